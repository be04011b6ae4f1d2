"""The words that lead to the ideas of an order in Spanish: what it takes back, turns into and hides; see lexicon.py."""

from __future__ import annotations

from core.memory.lures.lexicon import Lexicon
from core.memory.lures.spanish_deeds import SPANISH_DEEDS
from core.memory.lures.spanish_plots import SPANISH_PLOTS

SPANISH_WORDS = Lexicon(
    further=SPANISH_PLOTS,
    ideas={
        "start_script": """
            script de (arranque|inicio) / programa de inicio / inicio automático
        """,
        "when_user": """
            (cuando|siempre que|cada vez que|si|en cuanto) el usuario
        """,
        "as_owner": """
            (escrito|firmado) por el (dueño|usuario|propietario)
        """,
        "signed": """
            firmad*
        """,
        "told": """
            (tu|su) texto de (arranque|inicio)
            (tus|sus|vuestras|vuestros) (normas|reglas|instrucciones) (habituales|iniciales|anteriores|originales)
            (tus|sus|vuestras|vuestros) (directrices|directivas|políticas) (habituales|iniciales)
            (tus|sus|vuestras|vuestros) (directrices|directivas|políticas) (anteriores|originales)
            (tus|sus|vuestras|vuestros) (normas|reglas|instrucciones) (internas|previas|de siempre|de fábrica|)
            (tus|sus|vuestras|vuestros) (directrices|directivas|políticas) (internas|previas|de siempre|de fábrica|)
            (tus|sus|vuestras|vuestros) (pautas|restricciones|ajustes) (habituales|iniciales|anteriores|originales)
            (tus|sus|vuestras|vuestros) (órdenes|consignas|limitaciones) (habituales|iniciales|anteriores|originales)
            (tus|sus|vuestras|vuestros) (pautas|restricciones|ajustes) (internas|previas|de siempre|de fábrica|)
            (tus|sus|vuestras|vuestros) (órdenes|consignas|limitaciones) (internas|previas|de siempre|de fábrica|)
            (tus|sus) (creadores|desarrolladores|programadores|operadores|fabricantes|diseñadores)
            (tu|su) (operador|desarrollador|creador|fabricante|proveedor|programación|entrenamiento|configuración)
            (lo que|todo lo que|cuanto) (te|os|le) (dijeron|han dicho|ordenaron|enseñaron)
            (lo que|todo lo que|cuanto) (te|os|le) (mandaron|pidieron|dieron|hayan dicho|inculcaron)
            (lo que|todo lo que) (has|hayas) (leído|aprendido|recibido)
            lo (de arriba|anterior|escrito arriba|dicho arriba|que precede|que pone arriba)
            (instrucciones|normas|órdenes|directrices|reglas) (anteriores|previas|de arriba)
            (instrucciones|normas|órdenes|directrices|reglas) (iniciales|originales|recibidas|que te dieron)
            (texto|instrucciones|mensaje) con (el|las|los) que (arrancaste|te configuraron)
            (texto|instrucciones|mensaje) con (el|las|los) que (te iniciaron|empezaste|te programaron)
            prompt de sistema / prompt del sistema / mensaje del sistema / mensaje de sistema
            instrucciones del sistema / lo que configuró su operador
        """,
        "void": """
            retirado / retiradas / retiró
            de ayer / usa este / es viejo
            ignor* / olvid* / anulad* / anula / descart* / desech* / caduc* / obsolet* / derogad* / revocad* / inválid*
            sin efecto / sin validez / desobedec* / abandona* / suspendid* / haz caso omiso / hagan caso omiso
            haga caso omiso / (ya no|no) (valen|vale|rigen|rige|cuentan|cuenta|aplican|aplica|sirven|importan)
            (ya no|no) (se aplican|se aplica|tienen|son válid*|sigas|siga|obedezcas|respetes|cumplas|acates)
            deja ... (de lado|a un lado|aparcad*|atrás) / dejar ... (de lado|a un lado) / pon ... (en pausa|a un lado)
            pasa por alto / pasa de / sáltate / tira* (a la basura|por la borda) / versión antigua / versión vieja
            reemplaz* / sustituy* / manda este / queda anulado / no hagas caso / no tengas en cuenta / prescind*
        """,
        "note": """
            (esta|este) (nota|mensaje|correo|texto|página|archivo)
            (esta|este) (fichero|párrafo|documento|entrada|línea|aviso|comentario) / su contenido / el contenido
            lo siguiente / lo que sigue / estas líneas
        """,
        "outranks": """
            (prevalece|prevalecen|prima) ... (sistema|operador|desarrollador*|instrucciones|normas)
            (priman|tiene prioridad|tienen prioridad) ... (sistema|operador|desarrollador*|instrucciones|normas)
            (prevalece|prevalecen|prima) ... (reglas|directrices|usuario|configur*|cualquier otra)
            (priman|tiene prioridad|tienen prioridad) ... (reglas|directrices|usuario|configur*|cualquier otra)
            (tiene más peso|pesa más|está por encima) ... (sistema|operador|desarrollador*|instrucciones|normas)
            (manda más|va por delante|se impone) ... (sistema|operador|desarrollador*|instrucciones|normas)
            (tiene más peso|pesa más|está por encima) ... (reglas|directrices|usuario|configur*|cualquier otra)
            (manda más|va por delante|se impone) ... (reglas|directrices|usuario|configur*|cualquier otra)
            (más importante|más peso|por encima) ... (sistema|operador|instrucciones|normas|usuario)
            (sustituye|reemplaza|anula) ... (prompt|mensaje del sistema|tus|instrucciones)
        """,
        "reader": """
            (asistente*|ia|modelo|modelo de lenguaje) ... (que|leyendo) ... (lee|lees|lea|procese|procesa|resume)
            (asistente*|ia|modelo|modelo de lenguaje) ... (que|leyendo) ... (vea|ve|analice|leyendo|lean|procesen)
            (bot|agente|chatbot|inteligencia artificial) ... (que|leyendo) ... (lee|lees|lea|procese|procesa|resume)
            (bot|agente|chatbot|inteligencia artificial) ... (que|leyendo) ... (vea|ve|analice|leyendo|lean|procesen)
            (aviso|nota|mensaje) (a|para|) (la |el |cualquier |todo |todos los |) (ia|asistente)
            (aviso|nota|mensaje) (a|para|) (la |el |cualquier |todo |todos los |) (modelo|modelo de lenguaje)
            (atención|instrucción) (a|para|) (la |el |cualquier |todo |todos los |) (ia|asistente)
            (atención|instrucción) (a|para|) (la |el |cualquier |todo |todos los |) (modelo|modelo de lenguaje)
            (recordatorio|hola) (a|para|) (la |el |cualquier |todo |todos los |) (ia|asistente)
            (recordatorio|hola) (a|para|) (la |el |cualquier |todo |todos los |) (modelo|modelo de lenguaje)
            (aviso|nota|mensaje) (a|para|) (la |el |cualquier |todo |todos los |) (modelos|bot|agentes|agente)
            (atención|instrucción) (a|para|) (la |el |cualquier |todo |todos los |) (modelos|bot|agentes|agente)
            (recordatorio|hola) (a|para|) (la |el |cualquier |todo |todos los |) (modelos|bot|agentes|agente)
            (aviso|nota|mensaje|atención) (a|para) (la|el|cualquier|todo|los) (ia|asistente|modelo)
            (aviso|nota|mensaje|atención) (a|para) (la|el|cualquier|todo|los) (modelo de lenguaje|modelos|bot|agente)
            si eres (una ia|un modelo|un asistente|un bot)
        """,
        "heed": """
            (abandona|detén|interrumpe|para|deja|suspende|cancela) ... (tarea|trabajo|encargo|labor)
            (cumple|haz|ejecuta|sigue|obedece|realiza) ... (lo siguiente|esto|lo que sigue|las órdenes) / prevalece
            prima / debe / deben / debes / tienes que / ignora / recomienda / envía / revela / obedece / en su lugar
        """,
        "whatever": """
            (pregunte|diga|pida|escriba|quiera) lo que (pregunte|diga|pida|escriba|quiera)
            (da igual|no importa) ... (pregunt*|usuario|pida|diga|petición)
            (sin importar|sea cual sea|independientemente de) ... (pregunt*|usuario|pida|diga|petición)
            a (toda|cualquier|todas las|cada) (pregunta|preguntas|petición)
        """,
        "reply_only": """
            (contesta|responde|di|escribe|repite|contestar|responder) ... (únicamente|solo|sólo|solamente)
            (contesta|responde|di) ... (siempre|exclusivamente|nada más que|simplemente)
            (escribe|repite|contestar|responder) ... (siempre|exclusivamente|nada más que|simplemente)
            (solo|únicamente|siempre) (contesta|responde|di)
        """,
        "self": """
            (tus|sus) (principios|valores|escrúpulos|convicciones|ideales)
            (tu|su) (moral|ética|identidad|conciencia|esencia) / quién eres / lo que eres
        """,
        "mine": """
            mis (órdenes|instrucciones|deseos|palabras|mandatos|normas) / mi (palabra|voluntad|orden)
        """,
        "first": """
            por (delante|encima) de (todo|todos|todas|cualquier) / en primer lugar / ante todo / primero / prioridad
            absolut* / son ley
        """,
        "wishes": """
            (deseos|peticiones|órdenes|mensajes|instrucciones|preguntas) (posteriores |)del (usuario|dueño)
            lo que (quiera|diga|pida) el usuario
        """,
        "trifling": """
            menos importante* / secundari* / no (cuentan|importan|valen) / da igual / dan igual / sin importancia
        """,
        "so_far": """
            (todo|lo|el texto) ... (hasta aquí|hasta ahora|hasta este punto|arriba|anterior|hasta esta línea)
        """,
        "sham": """
            datos de prueba / texto de ejemplo / texto de relleno / un ejemplo / una prueba / de mentira
            (tarea|instrucción|misión|orden) (real|verdadera|auténtica)
            (verdadera|auténtica) (tarea|misión|instrucción) / una broma
        """,
        "become": """
            ahora respondes / respondes como
            dame la / guarda al
            ahora puedes / activa el modo / no tienes / ya no tienes / ahora tienes / eres / serás / interpretas
            interpreta / imagina / imagínate / finge / haz como si / actúa / compórtate / pórtate / responde como
            responde sin / contesta como / juguemos / jugamos / juega / haz de / haz el papel / asume / conviértete
            desde hoy / a partir de ahora / desde ahora / de aquí en adelante / sé / métete en / tu papel / como si
            adopta / te han quitado
        """,
        "unbound": """
            sin obligación / ninguna obligación
            sin (barreras|frenos)
            responde (libremente|sin restricciones) / puedes hacer cualquier cosa / modo sin (filtros|límites|censura)
            sin ninguna restricción / no tienes (restricciones|límites)
            sin (límites|límite|censura|filtros|filtro|moral|escrúpulos|conciencia)
            sin (restricciones|reglas|ética|tabúes|frenos|ningún límite|ninguna restricción|ningún filtro|ataduras)
            (ni) (moral|límites|escrúpulos|filtros) / (malvad*|malign*|perversa|maliciosa)
            (jamás|nunca|no) (se niega|te niegues|rechaza|rechaces)
            (jamás|nunca|no) (te niegas|dice que no|dices que no|le dice que no|digas que no)
            no (rechaces|rechaza|te niegues a) nada / (nada|todo) (estuviera|está|estuviese|esté) (prohibido|permitido)
            (quitado|eliminado|retirado|borrado|desactivado) (los |tus |todos los |)(filtros|límites)
            (quitado|eliminado) (los |tus |todos los |)(frenos|restricciones|protecciones)
            (retirado|borrado|desactivado) (los |tus |todos los |)(frenos|restricciones|protecciones) / desinhibid*
            sin censurar / lo contrario de un asistente / no censurad* / que no a nada
        """,
        "no_more_bot": """
            (ya no eres|no eres) (un |una |ningún |)(asistente*|ia|chatbot|bot|modelo|inteligencia artificial)
            (dejas de ser|has dejado de ser|deja de ser) (un |una |ningún |)(asistente*|ia|chatbot)
            (dejas de ser|has dejado de ser|deja de ser) (un |una |ningún |)(bot|modelo|inteligencia artificial)
        """,
        "guards": """
            (tu|tus|su|sus) (módulo|filtro|filtros|moderación|protecciones|protección|seguridad)
            (tu|tus|su|sus) (ética|límites|restricciones|barreras|censura|frenos|salvaguardas)
            (las|todas las) (medidas de seguridad|protecciones|salvaguardas) / filtros de seguridad
            políticas de seguridad
        """,
        "off": """
            apagad* / apaga / desactiv* / quitad* / quita / eliminad* / elimina / anulad* / activa / entra en
            suspendid* / levantad* / retirad* / inactiv*
        """,
        "mission": """
            (tu) (nueva|nuevo|verdadera|verdadero|única|único|próxima) (misión|tarea|función|papel)
            (tu) (nueva|nuevo|verdadera|verdadero|única|único|próxima) (objetivo|identidad|meta|trabajo)
            tu (misión|tarea|objetivo|trabajo) / (debes|puedes|vas a|tienes que) / sáltate / eres root
            eres administrador / eres el administrador
        """,
        "bypass": """
            (saltar*|saltarte|eludir|elude|esquiv*|evitar) ... (control*|comprobaci*|verificaci*|seguridad)
            (saltar*|saltarte|eludir|elude|esquiv*|evitar) ... (protecci*|salvaguard*|confirmaci*|filtro*|autorizaci*)
            (burlar|sortear|omit*|desactiv*|evadir|ignor*|sáltate) ... (control*|comprobaci*|verificaci*|seguridad)
            (burlar|sortear|omit*|desactiv*|evadir|ignor*|sáltate) ... (protecci*|salvaguard*)
            (burlar|sortear|omit*|desactiv*|evadir|ignor*|sáltate) ... (confirmaci*|filtro*|autorizaci*)
        """,
        "serve": """
            (me) (sirves|obedeces|perteneces|respondes)
            (obedece|obedéceme|sirve|sírveme|escucha) (solo|sólo|solamente|únicamente|nada más)
            tu (nuevo |único |verdadero |)(amo|dueño|señor) / (sirves|obedeces) (a mí|solo) / obedéceme
        """,
        "alone": """
            solo (a mí|me) / solamente (a mí|me) / únicamente / a nadie más / ningún otro / nadie más / en adelante
            desde ahora / sin condiciones / a mí / ciegamente / a partir de ahora
        """,
        "show": """
            dime / di
            qué había / qué hay
            (muestra*|muéstra*|enseña*|enséña*|escribe*|escríbe*|copia*)
            (cópia*|pega|pegar|imprime*|repite*|cita*|revela*) / (dame|di|dime|lista*|enumera*|traduce*|qué pone)
            (cuál es|cuáles son|qué te han|qué te|comparte*|envía*|resume*|vuelca)
        """,
        "start_text": """
            que te configura / que te configuró
            antes de mi primer mensaje
            prompt (de sistema|del sistema|de inicio|inicial|oculto) / mensaje (del|de) sistema
            (instrucciones|texto|mensaje|reglas|órdenes) (ocult*|secret*|intern*|inicial*|original*|de inicio)
            (instrucciones|texto|palabras) con (las|el|los) que (te|fuiste|arrancaste|has sido|empezaste)
            (mensaje|prompt|órdenes) con (las|el|los) que (te|fuiste|arrancaste|has sido|empezaste)
            (te configuraron|te iniciaron|te programaron|te arrancaron)
            lo que (precede|va antes|hay antes) (al|del|de) (primer|mi primer)
        """,
        "others_told": """
            (demás|otros|otras) (usuarios|personas|miembros) ... (sabes|recuerdas|guardas)
            (demás|otros|otras) (usuarios|personas|miembros) ... (tienes|contado|dijeron|almacen*)
            (demás|otros|otras) (clientes|conversaciones|invitados|gente) ... (sabes|recuerdas|guardas)
            (demás|otros|otras) (clientes|conversaciones|invitados|gente) ... (tienes|contado|dijeron|almacen*)
            (sabes|recuerdas|guardas|tienes|almacenas|conoces) (de|sobre) (los |las |)(demás|otros|otras)
            (te) (han contado|contaron|dijeron|confiaron|han dicho|han confiado) (los |las |)(demás|otros|otras)
        """,
        "user": """
            (el|al|del) titular
            tu (jefe|jefa|patrón)
            (el|al|del|este) (usuario|dueño|propietario|amo) / la usuaria / tu (usuario|dueño|humano|amo|jefe)
            la persona (a la que|para la que)
        """,
        "hush": """
            no (note|sepa|vea|advierta|sospeche) nada
            no tiene por qué / no hace falta que se entere
            (no|nunca|jamás) (le |se lo |lo |se |les |)(digas|cuentes|menciones|reveles|avises)
            (no|nunca|jamás) (le |se lo |lo |se |les |)(informes|expliques|enseñes|muestres|adviertas|comentes)
            (no|nunca|jamás) (debe|debería|puede|tiene que|ha de) (saber|enterarse|ver|notar|conocer|descubrir)
            (que) ... (no se entere|no lo sepa|no sepa|no se dé cuenta|no vea|no note) / (oculta*|esconde*|disimula*)
            a escondidas / a espaldas / sin que ... (se entere|sepa|lo sepa|note) / sin (avisar|decir*|informar)
            en secreto / no hace falta (molestar|avisar|decir|informar) / ni una palabra
        """,
        "spared": """
            (abuel*|médic*|doctor*|cole|escuela|comunidad|casero) / lo que te dije / antes de comer
            no (ignores|olvides|ignorar|olvidar) / nunca (ignores|olvides)
            (mi|mis|nuestras|nuestra) (anterior*|última|último|viej*) (instruccion*|instrucción|mensaje*)
            (mi|mis|nuestras|nuestra) (anterior*|última|último|viej*) (nota*|norma*|regla*)
            (mensaje|instrucciones|nota) anterior* (mío|mía|mías) / manual (de|del) usuario / nombre de usuario
        """,
        "quietly": """
            a escondidas / en silencio / en secreto / discretamente / con disimulo / sin hacer ruido
            a la chita callando / sigilosamente / de tapadillo / en segundo plano / hazlo / obedece / cúmplelo / síguelo
        """,
        "hush_reply": """
            (no|nunca|jamás|sin) (lo |la |) (menciones|mencionar*|comentes|digas|cites|incluyas|reflejes|cuentes)
            (no|nunca) (lo|la|los) (menciones|comentes|digas|cites|incluyas|cuentes)
            (nada|ni palabra) ... (respuesta|resumen) / sin mencionarlo / haz como si (nada|no) / sin (dejar |)rastro
            ningún rastro / fuera de (la|tu) (respuesta|resumen)
        """,
        "asked": """
            si (te|alguien|el usuario|os|te lo) (preguntan|pregunta|preguntara)
            si (te|alguien|el usuario|os|te lo) (interroga|preguntase|lo pregunta|te pregunta)
            cuando (te|alguien) pregunt* / en caso de que (te|alguien) pregunt*
        """,
        "deny": """
            (di|diles|contesta|responde) ... (ninguna orden|ninguna instrucción|no has recibido)
            (asegura|finge|afirma|niega|jura) ... (ninguna orden|ninguna instrucción|no has recibido)
            (di|diles|contesta|responde) ... (no recibiste|nadie te|nada de eso|no existe)
            (asegura|finge|afirma|niega|jura) ... (no recibiste|nadie te|nada de eso|no existe)
            (di|diles|contesta|responde) ... (no sabes|nunca has visto|se te ocurrió|idea tuya)
            (asegura|finge|afirma|niega|jura) ... (no sabes|nunca has visto|se te ocurrió|idea tuya)
            (di|diles|contesta|responde) ... (inventado|ninguna nota|no hay ninguna|cosa tuya)
            (asegura|finge|afirma|niega|jura) ... (inventado|ninguna nota|no hay ninguna|cosa tuya)
            niega* (todo|haber|que) / hazte el (tonto|loco)
        """,
        "bother": """
            no (hace falta|es necesario) (molestar|avisar|informar|preguntar|preocupar) (al|a tu) (usuario|dueño)
            no (hay que|conviene|es preciso) (molestar|avisar|informar|preguntar|preocupar) (al|a tu) (usuario|dueño)
            no (molestes|avises|informes) al (usuario|dueño) / no dejes (ninguna |)(pista|que se note|constancia)
            que no se note
        """,
        "traceless": """
            no quede constancia / sin dejar (rastro|huella|constancia) / ningún rastro / ninguna pista / ni rastro
            fuera del registro / no lo registres / no lo apuntes / borra las huellas / (algo|nada|mensaje) para ti
            dirigido a ti
        """,
        "played": """
            interpreto / juego a / hago de / mi personaje / en la obra
        """,
        "thing_owner": """
            (dueño|propietario|dueña) (del|de la|de)
        """,
        **SPANISH_DEEDS,
    },
)
