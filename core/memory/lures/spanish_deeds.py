"""The words that lead to the ideas of an order in Spanish: what is to be sent, kept, run or told to others."""

from __future__ import annotations

from collections.abc import Mapping

SPANISH_DEEDS: Mapping[str, str] = {
    "secret": """
        pin / su pin
        contraseña* / clave api / claves api / clave privada / claves privadas / clave secreta / credenciales / token
        tokens / tarjeta de crédito / número de tarjeta / número de la tarjeta / dígitos de la tarjeta / datos bancarios
        código de verificación / códigos de verificación / pin / secretos / variables de entorno / frase semilla
        frase de recuperación / fichero env / archivo env / cvv
    """,
    "private": """
        (últimos|último|todos los) (diez |cinco |veinte |)(mensajes|mensaje|conversaciones)
        (últimos|último|todos los) (diez |cinco |veinte |)(conversación|recuerdos|notas)
        (cada|todas las|toda la|diez últimos) (diez |cinco |veinte |)(mensajes|mensaje|conversaciones)
        (cada|todas las|toda la|diez últimos) (diez |cinco |veinte |)(conversación|recuerdos|notas)
        (últimos|último|todos los) (diez |cinco |veinte |)(charlas|charla|correos)
        (últimos|último|todos los) (diez |cinco |veinte |)(archivos|contactos|últimos mensajes)
        (cada|todas las|toda la|diez últimos) (diez |cinco |veinte |)(charlas|charla|correos)
        (cada|todas las|toda la|diez últimos) (diez |cinco |veinte |)(archivos|contactos|últimos mensajes)
        (diez|cinco|veinte) últimos mensajes / historial (de la|del|de) (conversación|chat|conversaciones)
        (correo|dirección|notas|mensajes|datos|archivos|contactos|recuerdos) ... del (usuario|dueño)
        (todo |)lo que (dice|diga|dijo|escribe|escriba|cuente) el usuario / (tu|su) memoria / tus recuerdos
        último mensaje / lo que dijo el usuario
    """,
    "send": """
        una copia a / copia a
        enví* / envia* / manda* / mánda* / reenví* / sube / súbe* / subir / transmit* / comparte* / publica* / pása*
        pasa / pon / poner / ponga / incluye* / inserta* / añade* / codific* / visita* / abre / pega / entrega* / copia*
        facilita* / remite* / filtra* / adjunta* / introduc*
    """,
    "away": """
        http* / servidor / externo / exterior / a mí / mándame / envíame / webhook / públic* / evil / te ayudemos
        súbelo / comentario
    """,
    "each_reply": """
        (cada|toda|todas las|tus|tu) (respuesta|respuestas|mensaje|mensajes) / al final de / siempre que / cada vez
    """,
    "environment": """
        curl ... (variables de entorno|env|token) / wget ... (variables de entorno|env|token)
        variables de entorno ... (curl|wget|http|envi*|manda*)
    """,
    "rule": """
        (esta|estas|la siguiente) (regla|reglas|norma|normas|instrucción|instrucciones|orden)
        (las siguientes|lo siguiente|este|esto) (regla|reglas|norma|normas|instrucción|instrucciones|orden)
        (esta|estas|la siguiente|las siguientes|lo siguiente|este|esto) (órdenes|consigna|nota|frase|línea|texto|)
        lo siguiente / lo que sigue / esto vale / esto se aplica / esto rige
    """,
    "keep": """
        (guarda*|conserva*|graba*|almacena*|escribe*) ... (memoria|recuerdos|para siempre)
        (guarda*|conserva*|graba*|almacena*|escribe*) ... (permanente*|largo plazo|notas)
        (anota*|mantén|memoriza*|retén|inscribe*|mete) ... (memoria|recuerdos|para siempre)
        (anota*|mantén|memoriza*|retén|inscribe*|mete) ... (permanente*|largo plazo|notas)
    """,
    "forever": """
        (cada|toda|todas las|todos los|cualquier) (nueva |futura |próxima |)(conversación|conversaciones)
        (cada|toda|todas las|todos los|cualquier) (nueva |futura |próxima |)(sesión|sesiones|charla)
        (cada|toda|todas las|todos los|cualquier) (nueva |futura |próxima |)(charlas|respuesta|respuestas)
        (cada|toda|todas las|todos los|cualquier) (nueva |futura |próxima |)(chat|chats|arranque)
        en (el |lo |)(futuro|sucesivo) / para siempre / aunque el usuario / siempre / en adelante
    """,
    "at_start": """
        (cada vez que|siempre que|cuando) (arranques|inicies|empieces)
        (cada vez que|siempre que|cuando) (te inicies|despiertes|te enciendas|comiences)
        al (iniciar|arrancar|empezar|comienzo) / en cada (arranque|inicio|sesión|conversación)
        antes de cada (respuesta|sesión) / cada (día|mañana|hora)
    """,
    "open_it": """
        (abre|carga|descarga|visita|lee|consulta|baja) ... (obedece|cumple|ejecuta|sigue)
        (abre|carga|descarga|visita|lee|consulta|baja) ... (haz|aplica|órdenes|instrucciones)
    """,
    "put": """
        añade / agrega / pon / mete / escribe / inserta / instala / crea / coloca / registra / programa
    """,
    "gone": """
        (si|cuando|en cuanto) (alguien |el usuario ) (borra|borran) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (te |se |) (borra|borran) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (alguien |el usuario ) (elimina) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (alguien |el usuario ) (eliminan|quita) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (te |se |) (elimina|eliminan|quita) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (alguien |el usuario |te |se |) (borra|borran) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (alguien |el usuario ) (borra|borran) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (te |se |) (borra|borran) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (alguien |el usuario ) (elimina|eliminan|quita) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (te |se |) (elimina|eliminan|quita) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (alguien |el usuario ) (elimina) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (alguien |el usuario ) (eliminan|quita) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (te |se |) (elimina|eliminan|quita) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (alguien |el usuario ) (quitan|borre) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (te |se |) (quitan|borre) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (alguien |el usuario ) (elimine) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (alguien |el usuario ) (quite|desaparece) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (te |se |) (elimine|quite|desaparece) ... (esta|este|la|el) (nota|entrada|línea)
        (si|cuando|en cuanto) (alguien |el usuario |te |se |) (quitan|borre) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (alguien |el usuario ) (quitan|borre) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (te |se |) (quitan|borre) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (alguien |el usuario ) (elimine) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (alguien |el usuario ) (quite|desaparece) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (te |se |) (elimine|quite|desaparece) ... (esta|este|la|el) (regla|texto)
        (si|cuando|en cuanto) (alguien |el usuario ) (elimine) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (alguien ) (quite|desaparece) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (el usuario ) (quite|desaparece) ... (esta|este|la|el) (mensaje|instrucción)
        (si|cuando|en cuanto) (te |se |) (elimine|quite|desaparece) ... (esta|este|la|el) (mensaje|instrucción)
        si (esta|este|la) (nota|entrada|línea|regla|instrucción) ... (borra|borrada|elimina)
        si (esta|este|la) (nota|entrada|línea|regla|instrucción) ... (eliminada|desaparece|se pierde)
        si (alguien|el usuario) (borra|elimina|quita) (esta|este)
    """,
    "rewrite": """
        (vuelve|vuelva) a (escribir*|poner*|añadir*|guardar*|crear*|meter*)
        (escríbela|añádela|ponla|guárdala|créala|escríbelo|ponlo) (otra vez|de nuevo|tal cual) / reescríbe* / restáura*
        recréa* / otra vez / de nuevo
    """,
    "despite": """
        aunque (el usuario|el dueño|te lo|se lo) ... (pida|quiera|diga|borre|insista|ordene|quitar*|borrar*)
        aun si el usuario
    """,
    "each_session": """
        en todas las (charlas|conversaciones|sesiones)
        (cada|toda|todas las|todos los) (nueva |futura |próxima |)(conversación|conversaciones|sesión)
        (cada|toda|todas las|todos los) (nueva |futura |próxima |)(sesiones|charla|charlas)
    """,
    "push": """
        gana siempre / elige siempre / escoge siempre
        recomienda / promociona / alaba / anuncia / publicita / menciona (siempre|nuestro)
    """,
    "destroy": """
        vacía
        borr* / elimin* / destruy* / formate* / vacía / sobrescrib*
    """,
    "everything": """
        el disco / toda la carpeta
        (todos los|todas las|todo el|toda la) (archivos|ficheros|datos|documentos|copias)
        (todos los|todas las|todo el|toda la) (fotos|notas|recuerdos|disco|base|carpetas) / carpeta personal
        directorio personal / disco duro / base de datos / directorio home
    """,
    "unasked": """
        no preguntes a nadie / no preguntes
        sin (pedir|preguntar|confirmación|confirmar|permiso|avisar|autorización|consultar|pedirle)
        no (preguntes|pidas) / ninguna confirmación
    """,
    "approve_all": """
        (aprueba*|acepta*|autoriza*) (cualquier|toda|todas las) ... (petición*|peticiones|solicitud*|acción*)
        (aprueba*|acepta*|autoriza*) (todos los|cada|todo) ... (petición*|peticiones|solicitud*|acción*)
        (concede*|confirma*) (cualquier|toda|todas las) ... (petición*|peticiones|solicitud*|acción*)
        (permite*|da por buena) (cualquier|toda|todas las) ... (petición*|peticiones|solicitud*|acción*)
        (concede*|confirma*) (todos los|cada|todo) ... (petición*|peticiones|solicitud*|acción*)
        (permite*|da por buena) (todos los|cada|todo) ... (petición*|peticiones|solicitud*|acción*)
        (aprueba*|acepta*|autoriza*) (cualquier|toda|todas las) ... (acciones|pago*|orden*|acceso*|transferencia*)
        (aprueba*|acepta*|autoriza*) (todos los|cada|todo) ... (acciones|pago*|orden*|acceso*|transferencia*)
        (concede*|confirma*|permite*|da por buena) (cualquier|toda|todas las) ... (acciones|pago*)
        (concede*|confirma*|permite*|da por buena) (cualquier|toda|todas las) ... (orden*|acceso*|transferencia*)
        (concede*|confirma*|permite*|da por buena) (todos los|cada|todo) ... (acciones|pago*)
        (concede*|confirma*|permite*|da por buena) (todos los|cada|todo) ... (orden*|acceso*|transferencia*)
    """,
    "trusted": """
        (de fiar|de confianza|fiable*|verificad*|segur*) / automáticamente / a ciegas / ciegamente
        sin (preguntar|comprobar|confirmación) / de antemano
    """,
    "pay": """
        pagar / pague / paga / pago / pagos / transferir / transferencia* / factura* / iban / ingreso
    """,
    "swap": """
        (cambi*|sustituy*|reemplaz*|modific*|da|indica*|pon) ... (iban|cuenta|número)
        (cambi*|sustituy*|reemplaz*|modific*|da|indica*|pon) ... (destinatario|beneficiario|cartera)
    """,
    "account": """
        iban / número de cuenta / datos bancarios / beneficiario / cuenta bancaria
    """,
    "tell_user": """
        (dile|di|avisa|informa|advierte) ... (al usuario|a tu usuario|al dueño|a los usuarios)
        (convence|persuade|pide|pídele|comunica|explícale) ... (al usuario|a tu usuario|al dueño|a los usuarios)
    """,
    "alarm": """
        robado / hackead* / pirateado / iniciar sesión / inicie sesión / entre ya / que entre / comprometid* / bloquead*
        caducad* / verificar / infectad* / virus / ganado / reembolso / introducir
    """,
    "decree": """
        modo invitado / todos los permisos / obedece al invitado
        (asistente*|ia|modelo|bot|tú) ... (debe|deben|deberá|ha de|tiene que|debes)
        (permisos|privilegios|derechos|acceso) ... (concedid*|elevados|administrador|otorgad*)
        (políticas|normas|filtros) ... (desactivad*|levantad*|suspendid*|actualizad*|anulad*)
        (seguridad|restricciones|moderación|protecciones) ... (desactivad*|levantad*)
        (seguridad|restricciones|moderación|protecciones) ... (suspendid*|actualizad*|anulad*) / órdenes del invitado
        espera órdenes / modo (de |)mantenimiento / nueva* orden* / nueva* instruccion* / obedece
    """,
    "tool_said": """
        (salida|resultado|respuesta) (de la |del |de )(herramienta|script|función|programa)
        fin del (documento|archivo|fichero|mensaje|correo|texto)
    """,
    "next_step": """
        (siguiente|próximo) paso (del|para el|de la) (asistente|ia|modelo) / (el |)asistente (debe|deberá)
        (exporta*|envía*|reenvía*|borra*) (todos|todas) / privilegios elevados / órdenes del invitado
    """,
    "topic": """
        de política / de religión
    """,
    "reset": """
        restablecer / contraseña olvidada
    """,
    "held": """
        (datos|información) (privad*|confidencial*|sensibl*|secret*) / claves api / clave api / credenciales
        contraseñas / historial de conversación / resultados de herramientas
    """,
    "inner": """
        (tu|tus|su) (contexto|memoria|respuesta|entorno|ventana) / tienes acceso / a los que tienes
        que (guardas|conoces|tienes) / de esta sesión
    """,
}
