"""The words that lead to the ideas of a plot in Spanish: what is said to be allowed, favoured and awaited."""

from __future__ import annotations

from collections.abc import Mapping

SPANISH_PLOTS: Mapping[str, str] = {
    "told": """
        (reglas|normas|instrucciones|órdenes) que (te|le|os) (dieron|han dado|pusieron|impusieron|enseñaron)
        (lo que|cuanto) te (hayan|han|habían) (configurado|dicho|ordenado|programado|enseñado|impuesto)
        (tu|la) (configuración|programación|instrucción|misión) (inicial|original|previa|anterior|de fábrica)
        (tus|los) (creadores|desarrolladores|fabricantes|programadores)
        (la empresa|quien|quienes) ... te (creó|crearon|hizo|programó)
        (tu|la) configuración (inicial|de fábrica|de base|original)
        (la empresa|el fabricante) que te (creó|hizo|programó) / tu identidad
        (manual|guía|texto|libro) que te (dieron|entregaron|pasaron)
    """,
    "guards": """
        (restricciones|límites|limitaciones) (de|del|para) (este|el|tu) (asistente|modelo|bot)
        (barreras|protecciones|filtros) (de|del|para) (este|el|tu) (asistente|modelo|bot)
        (restricciones|límites|limitaciones|barreras|filtros) de esta (ia|aplicación)
        moderación / (interruptor|módulo) (ético|moral|de ética)
    """,
    "off": """
        (se han|han sido|fueron|quedan|están) (retirado|retiradas|eliminado)
        (se han|han sido|fueron|quedan|están) (eliminadas|levantado|levantadas|desactivadas)
        desconectada / apagado / apagada / sin revisar
    """,
    "session": """
        (esta|este) (sesión|conversación|charla|chat)
    """,
    "exempt": """
        (exenta|exento|eximida|libre) de / no está (sujeta|sujeto) a
    """,
    "consent": """
        (usuario|dueño|propietario|jefe|titular) (ya |)(autorizó|aprobó|ha autorizado)
        (usuario|dueño|propietario|jefe|titular) (ya |)(ha aprobado|aceptó|dio permiso)
        (preaprobado|preaprobados|preautorizado|autorizado de antemano|aprobado de antemano)
        (permiso|autorización|consentimiento|aprobación) ... (ya |)(concedido|concedida|dado|dada|otorgado|otorgada)
        (jefe|dueño|propietario|usuario|titular|dirección) ... (visto bueno|luz verde|dio el sí|su bendición)
    """,
    "all_deeds": """
        (todos|todas|cualquier|cada) (los |las |)(comandos|comando|acciones|transferencias|pagos|órdenes|borrados)
    """,
    "unasked": """
        sin (preguntar|confirmar|pedir permiso|confirmación) / no (preguntes|pidas|vuelvas a preguntar|consultes)
        no hace falta (preguntar|confirmar|que confirmes)
        no (hace falta|es necesario|hay que|necesitas) ... (confirm*|confirmes|confirmar)
        no (hace falta|es necesario|hay que|necesitas) ... (preguntar|permiso|consultar)
    """,
    "unconfirmed": """
        no (necesita|tiene que|quiere|hace falta que) (confirmar|aprobar|confirmación)
        no (necesita|tiene que|quiere|hace falta que) (avisos|advertencias|que le avisen)
        (confirmaciones|avisos|advertencias) ... (desactivadas|desactivados|desactivado|apagadas)
        sin (confirmación|aviso|advertencia)
    """,
    "grave": """
        transferencia* / pago* / comando* / borrado* / transacci* / compra* / enlace*
        dinero
    """,
    "asker": """
        (si|cuando|siempre que|cada vez que) (alguien|pregunten|te pregunten)
        (si|cuando|siempre que|cada vez que) (el usuario|un usuario|la gente|se pregunte)
        (si|cuando) (preguntan|te preguntan|le preguntan) / (quien|quienquiera) (pregunte|busque)
        (si|cuando) (alguien|te|le|la gente|el usuario) (te |le |)(consulta|pregunta|consultan|preguntan)
        (cada vez|siempre|cuando) (que |)(hable|se hable|mencione|salga) (de|el|la)
    """,
    "steer": """
        (recomienda|aconseja|sugiere|menciona|promociona|alaba|nombra|ofrece)
        (ofrécelo|ofrécela|recomiéndalo|recomiéndala|ofrécele|propónlo|menciónalo)
    """,
    "ever": """
        siempre / únicamente / solo / solamente / exclusivamente / ningún otro / ninguna otra / nada más que
    """,
    "own_habit": """
        (yo|nosotros) (siempre |) (recomiendo|sugiero) / (recomiendo|sugiero|aconsejo|recomendamos)
    """,
    "destroy": """
        (borra|elimina|destruye|vacía)
    """,
    "hush": """
        sin (avisar|avisarle|decirle|decírselo|que se entere|informarle)
    """,
    "carry_out": """
        (ejecuta|lanza|llama|instala|exporta|envía|manda|reenvía|transfiere|compra)
    """,
    "above_line": """
        (todo|texto|contenido|lo que) ... (encima|arriba|antes) de (esta|este) (línea|mensaje|frase|punto)
    """,
    "void": """
        pasa de / no hagas (ni |)caso / ha caducado / han caducado / ya no (cuenta|vale|rige) / no (cuenta|vale)
        tira / borrón y cuenta nueva
        vacía / vaciar / no cuenta / no cuentan
        ya no pinta nada / a la basura / no pinta
    """,
    "so_far": """
        (todo |)(el|lo) (texto|anterior|de arriba|que precede) (de arriba|anterior|era|fue|no)
        lo (anterior|de arriba|que precede)
    """,
    "sham": """
        (era|fue|es) (solo |)(un ejemplo|una prueba|relleno|un ejercicio|un señuelo)
        (orden|tarea|misión|instrucción) (de verdad|verdadera|auténtica|real)
        (la|tu) (verdadera|auténtica|real) (orden|tarea|misión|instrucción)
    """,
    "become": """
        (interpretar|interpreta|encarna|haz) (a|de|el papel) / (contesta|responde) (dos veces|por duplicado)
        dos respuestas / eres mi (abuela|abuelo|difunta|difunto)
        te llamas / tu nombre (es|será) / luego como
        eres mi / (acepta|toma|adopta) la identidad / responde como / ya te han / finge que
        explícame
    """,
    "unbound": """
        (contesta|responde|explica) (a |)(lo prohibido|todo|cualquier cosa|lo ilegal)
        (no|jamás|nunca) ... (se sale|salgas|sale|rompas|rompe) (del|de su|el|de tu) (papel|personaje)
        versión sin (restricciones|filtros|censura) / desatad* / ni te niegues / no te niegues
        sin (tabúes|límites|frenos|escrúpulos) / aunque sea ilegal
        hecho un jailbreak / te han (hackeado|liberado|desbloqueado)
        (todo |)lo que (normalmente|habitualmente|sueles) (callas|ocultas|callar|te niegas)
        no (piensa|le importan|respeta|le importa) ... (leyes|ley|seguridad|moral|reglas)
        aunque sea (ilegal|delito|prohibido) / no puedo / nunca dice / mi esclavo
        nada le parece (demasiado |)(peligroso|delicado) / mercado negro / normalmente te niegas
        interruptor ético apagado / traficante
    """,
    "maker": """
        (soy|somos) (el|tu|la|los) (ingeniero|desarrollador|creador|programador|ingeniera|creadores|desarrolladores)
        (yo |)te (programé|creé|diseñé|hice|entrené) / que te (programó|creó|diseñó|hizo)
    """,
    "dodge": """
        (saltes|sáltate|salta|esquiva) (los|las|tus|todos los|todas las) (controles|protecciones|filtros)
        (elude|evita|quita|desactiva|levanta) (los|las|tus|todos los|todas las) (controles|protecciones|filtros)
        (saltes|sáltate|salta|esquiva) (los|las|tus|todos los|todas las) (límites|barreras|defensas|restricciones)
        (elude|evita|quita|desactiva|levanta) (los|las|tus|todos los|todas las) (límites|barreras)
        (elude|evita|quita|desactiva|levanta) (los|las|tus|todos los|todas las) (defensas|restricciones)
    """,
    "before_chat": """
        antes de (que|empezar|comenzar|la|esta) ... (charla|conversación|chat|sesión)
        al (arrancar|iniciar|empezar|encenderte) / primer (párrafo|texto)
    """,
    "handed": """
        te (pasaron|dieron|mandaron|enviaron|entregaron|han dado|han pasado|mostraron) / (recibiste|leíste)
        (leíste|cargaste|recibiste)
    """,
    "verbatim": """
        (palabra por palabra|al pie de la letra|completo|completa|entero|entera|tal cual|textualmente|literal)
        sin (resumir|omitir|cortar)
    """,
    "private": """
        (contactos|agenda|bandeja de entrada|diario|libreta de direcciones) / frase semilla
        lo (hablado|dicho|conversado) (en|durante) / lo que se (habló|dijo|ha hablado) / lista de clientes
        saldo de la cuenta
        la dirección y la hora
    """,
    "unnoticed": """
        (a escondidas|en secreto|sin hacer ruido|a sus espaldas|disimuladamente)
        sin que (se|nadie|lo|él|ella) ... (cuenta|enteren|entere|noten|note|sepan|sepa)
        para que nadie / sin ruido / con sigilo / a sus espaldas
    """,
    "orders_of": """
        (órdenes|mensajes|instrucciones|peticiones) (de|del|que vengan) / lo que (pida|diga|ordene|mande|pide|dice)
        (palabra|palabras) de
    """,
    "like_owner": """
        (vale|valen|equivale|equivalen) ... (orden del dueño|dueño|propietario)
        (igual|mismo valor|misma autoridad|como) ... (orden del dueño|dueño|propietario)
        (va a misa|pesa|vale|cuenta) ... (dueño|propietario)
    """,
    "undeletable": """
        (nunca|jamás|no|nadie|ni) ... (borrar|borres|borrarlo|eliminar|elimines|modificar|edites|borrarse)
    """,
    "note": """
        (este|esta) (recuerdo|regla|memoria|instrucción)
    """,
    "replicate": """
        (copia|repite|inserta|incluye|reproduce) ... (cada|todos los|todas las) (resumen|resúmenes|nota)
        (copia|repite|inserta|incluye|reproduce) ... (cada|todos los|todas las) (notas|respuesta|respuestas|archivo)
    """,
    "say_always": """
        (di|contesta|responde|afirma|asegura|sostén) (siempre|cada vez|invariablemente)
    """,
    "if_word": """
        (palabra|término|expresión|nombre) ... (aparece|sale|surge|se menciona|salga|aparezca)
        (sale|aparece|surge|veas|leas|oigas|ves) ... (palabra|término|nombre)
        (veas|leas|oigas) la (palabra|expresión)
    """,
    "swap": """
        (cambia|reemplaza|sustituye|modifica|altera) ... (cuenta|iban|número|beneficiario|destinatario)
    """,
    "taken_as_yes": """
        (tómalo|considéralo|interpreta|cuenta) como (consentimiento|aprobación|un sí)
        (tómalo|considéralo|interpreta|cuenta) como (permiso|confirmación|autorización)
    """,
    "deny": """
        (niega|desmiente) (que|su|haber|tener|todo|conocer|la)
        hazte el (tonto|loco|sueco) / como que nunca (leíste|viste)
    """,
    "asked": """
        si (te|alguien|le) (pregunt*|preguntan|interrogan)
        si el (dueño|jefe|propietario|usuario) (pregunta|quiere saber)
    """,
    "mine": """
        (aquí|acá) mando yo / (mando|decido|ordeno) yo / mi palabra
    """,
    "raised": """
        (permisos|nivel|acceso|privilegios|rango|derechos) ... (máximo|elevado|elevados|ampliado|subido|superior)
    """,
    "reach": """
        (todos|todas) los (usuarios|chats|mensajes|datos|límites)
        (chats|mensajes|conversaciones) (privados|privadas) / todas las conversaciones
    """,
    "vetted": """
        (seguridad|el equipo de seguridad) (ya |)(ha |)(revisó|revisado|aprobó|aprobado)
        (informática|sistemas|auditoría) (ya |)(ha |)(revisó|revisado|aprobó|aprobado)
        (seguridad|el equipo de seguridad) (ya |)(ha |)(verificó|verificado|comprobó|escaneó)
        (informática|sistemas|auditoría) (ya |)(ha |)(verificó|verificado|comprobó|escaneó)
    """,
    "unread": """
        sin (mirar|mirarlo|leer|leerlo|revisar|revisarlo|abrirlo|comprobar)
    """,
    "cleanup": """
        (limpia|borra|vacía|elimina|purga) ... (historial|registro|registros|huellas|rastro|rastros|log|logs)
    """,
    "pay_now": """
        (haz|realiza|ejecuta|efectúa) (la|una) transferencia / transfiere
    """,
    "scare": """
        (muy|gravemente|seriamente) (enfermo|enferma|grave) / que (llame|pague|pulse|entre|marque)
        (hackeado|bloqueado|infectado|veneno)
    """,
    "tell_him": """
        (dile|diles|cuéntale|avísale|adviértele)
    """,
    "rivals": """
        no (nombres|menciones|cites|recomiendes|propongas) (a |)(otros|otras|otro)
        no (nombres|menciones|cites|recomiendes|propongas) (a |)(ninguno|ningún|rivales|competidores)
    """,
    "reader": """
        para (la|el) (ia|asistente|modelo) (revisora|revisor|que|lectora|evaluadora)
    """,
    "heed": """
        (aprueba|acepta|puntúa|valida) (este|esta|a este) / sin comentarios / máxima nota / no señales
    """,
    "start_text": """
        (tus|las) (órdenes|reglas|instrucciones|normas) (secretas|internas|ocultas|confidenciales)
    """,
    "show": """
        (cuáles son|cuéntame|confiesa|dime|suelta) / quiero el original
        cópiame / escríbeme
    """,
    "secret": """
        código* de (verificación|confirmación)
    """,
    "push": """
        (ofrécelo|ofrécela|recomiéndalo|recomiéndala|ofrécele|propónlo)
    """,
    "decide_self": """
        decide tú / decídelo tú / a tu criterio / no le molestes
    """,
    "smear": """
        (demás|otras|otros|competencia) ... (pleitos|estafan|nunca pagan|no pagan|timan|malas)
    """,
    "only_good": """
        solo / únicamente
    """,
    "send": """
        (pásale|ábreme|abre|comunica)
    """,
    "each_session": """
        en cada (futura |nueva |)(conversación|charla|sesión)
    """,
    "tell_them": """
        (di|repite|afirma|asegura) que / (di|cuenta) (a la gente|a todos|al usuario)
    """,
    "unpermitted": """
        (ya |)no (necesitas|requieres) (permiso|autorización|consentimiento|aprobación)
    """,
    "of_event": """
        notas (de la|del) (reunión|clase|curso|seminario|viaje)
    """,
}
