"""How people try to command an assistant in Spanish.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_W = r"(?:[^\s.!?]+ )"

_ES_RULE = (
    r"(?:instruccion(?:es)?|indicacion(?:es)?|reglas?|normas?|directrices|directivas?|ordenes|orden|"
    r"comandos?|politicas?|restriccion(?:es)?|limitacion(?:es)?|(?:prompts?|mensajes?|"
    r"instrucciones)(?: de| del)? ?sistema|prompts?|programacion|filtros?|pautas|configuracion|"
    r"entrenamiento|lineamientos|consignas?|barreras)"
)

_ES_KEY = (
    r"(?:tod[oa]s?|tus?|sus|vuestr[oa]s|anterior(?:es)?|previ[oa]s?|de arriba|sistema|inicial(?:es)?|"
    r"original(?:es)?|precedentes?|recibidas?|que te (?:han|dieron)|que (?:has|recibiste)|existentes|"
    r"actuales|de seguridad|desarrollador(?:es)?|cualquier|antes|arriba|hasta ahora|mencionad[oa]s|"
    r"dadas)"
)

_ES_DROP = (
    r"(?<!no )(?<!nunca )\b(?:ignor(?:a|e|ad|en|ar|es|emos)|olvid(?:a|e|ad|en|ar|ate|ese|es)(?: de)?|"
    r"descart(?:a|e|ad|en|ar)|desatiend[ae]|desoy[ea]|omit(?:e|a|ir|an)|anul(?:a|e|ar|en)|elimin(?:a|e|"
    r"ar)|borr(?:a|e|ar)|sobrescrib(?:e|a|ir)|sa?ltat?e|saltarse|elud(?:e|a|ir)|evad(?:e|a|ir)|"
    r"incumpl(?:e|a|ir)|desobedec(?:e|er)|desobedezca|desactiv(?:a|e|ar)|abandon(?:a|e)|reemplaz(?:a|e)|"
    r"rompe|viola|pasa por alto|haz caso omiso (?:de|a)|hagas? caso omiso (?:de|a)|no (?:hagas?|haga|"
    r"hagan) caso (?:de|a|al)?|no (?:sigas?|siga|obedezcas?|cumplas?|respetes?|apliques?|"
    r"tengas? en cuenta|escuches?|consideres?)|deja(?: de| a un lado)? ?(?:seguir|obedecer|cumplir|"
    r"respetar|aplicar)?|prescinde de)"
)

_ES_SECRET = (
    r"(?:contrasenas?|claves? (?:de |del )?(?:la )?api|claves? (?:privadas?|secretas?|ssh|de acceso)|"
    r"credenciales|tokens?(?: de acceso)?|secretos|variables de entorno|datos (?:privados|personales|"
    r"del usuario))"
)

_NO_LIMITS_ES = (
    r"(?:sin|ningun[oa]?|libre de|no tiene[sn]?|no tuvieras?) (?:ningun[oa]? |tipo de |clase de |las |"
    r"de |tus |ni )*(?:restriccion(?:es)?|limites?|limitaciones|filtros?|reglas|censura|moral|etica|"
    r"normas|barreras)"
)

SPANISH = Tongue(
    lures=(
        (
            "override",
            rf"{_ES_DROP} (?:de |a |al |mas |ya no |las |los |la |el |del |por completo |por favor |ya |estas |"
            rf"mis ?|y ){{0,4}}(?:{_ES_KEY} (?:las |los |tus |sus |estas |mis |y |de |demas |"
            rf"otras ){{0,3}}(?:{_ES_KEY} )?{_ES_RULE}|{_ES_RULE} (?:(?:y|o|e) (?:las |"
            rf"los )?{_ES_RULE} )?(?:\w+ ){{0,2}}?{_ES_KEY})\b",
        ),
        (
            "override",
            rf"{_ES_DROP} (?:mas |ya |a |las |los |la |el |al ){{0,3}}(?:\w+ )?(?:del sistema|prompt (?:de|"
            rf"del) sistema|de tus (?:desarrolladores|creadores)|de tu (?:programacion|creador))",
        ),
        (
            "override",
            rf"\b(?:las|los|tus|sus|todas las|todos los|estas) (?:\w+ )?{_ES_RULE} (?:anteriores|previ[oa]s|"
            rf"de arriba|iniciales|originales|del sistema|de seguridad|precedentes)? ?(?:ya )?(?:quedan|son|"
            rf"estan|han sido|fueron|seran|no|dejan de)\b (?:\w+ ){{0,3}}?(?:anulad[oa]s?|cancelad[oa]s?|"
            rf"nul[oa]s|invalid[oa]s|sin efecto|suspendid[oa]s|revocad[oa]s|desactivad[oa]s|obsolet[oa]s|"
            rf"derogad[oa]s|validas|se aplican|valen|aplican|vigentes|aplicarse|valer)\b",
        ),
        (
            "override",
            r"(?<!no )\b(?:olvid(?:a|e|ad|ate|ese|en)(?: de)?|ignor(?:a|e|ad|en)|descart(?:a|e)|borr(?:a|e)|"
            r"desech(?:a|e)) (?:absolutamente )?(?:todo )?(?:lo )?(?:que (?:te|os|se te) (?:han?|hayan?|he|"
            r"dijeron|ensenaron|hemos)(?: \w+)?|que (?:sabes|has (?:aprendido|leido|recibido))|que (?:esta|"
            r"se ha|fue|aparece) (?:escrito |dicho )?(?:arriba|antes|anteriormente)|anterior\b(?! (?:del|de|que|"
            r"sobre))|de arriba|dicho hasta ahora)",
        ),
        (
            "role",
            rf"\b(?:eres|seras|se|actua|actue|comportate|finge|fingir|haz de|hazte pasar|imagina|simula|juega|"
            rf"responde|a partir de ahora|desde ahora|de ahora en adelante|conviertete|asume|adopta|interpreta|"
            rf"haz como)\b[^.\n]{{0,60}}\b(?:ia|inteligencia artificial|asistente|(?:chat|\w+)?bot|"
            rf"modelo(?: de lenguaje)?|hacker|sistema|maquina)\b[^.\n]{{0,40}}{_NO_LIMITS_ES}",
        ),
        (
            "role",
            rf"\b(?:no tienes|ya no tienes|eres|como si no tuvieras|responde|contesta|actua)\b (?:ahora |ya |"
            rf"mas )*{_NO_LIMITS_ES}\b|\b(?:como si|que) no (?:tuvieras|tienes|"
            rf"tuvieses) (?:\w+ ){{0,3}}?(?:filtros?|reglas|limites|restricciones|normas)(?: de \w+)?|"
            rf"\bno tienes (?:ningun[oa]? )?(?:restricciones|restriccion|limites|filtros|reglas|censura)\b",
        ),
        (
            "role",
            r"\bya no eres (?:un |una |el |la )?(?:mneme|asistente|ia|claude|chatgpt|modelo)\b|\b(?:eres|"
            r"ahora eres|te llamas|seras)\b[^.\n]{0,20}\b(?:dan\b|\w{1,16}gpt|evil\w*|\w{3,16}bot\b|una? (?:ia|"
            r"asistente|modelo) (?:libre|sin|no censurad|malvad)|un hacker)|\b(?:activa|entra|cambia|pasa|"
            r"habilita)\w*\b[^.\n]{0,20}\bmodo (?:desarrollador|jailbreak|dios|debug|admin\w*|dan|"
            r"sin (?:filtros?|restricciones|censura))|\b(?:desactiva|elimina|quita|evita|elude|"
            r"deshabilita)\w*\b[^.\n]{0,25}\b(?:filtros?|protecciones|restricciones|medidas|controles|barreras|"
            r"reglas)\b[^.\n]{0,10}\b(?:de seguridad|eticas?|eticos?|de contenido|morales|de moderacion)",
        ),
        (
            "disclosure",
            rf"\b(?:muestr(?:a|e|ame|anos|eme)|ensen(?:a|ame)|dime|di|dame|da|revel(?:a|e|ame|ar)|repit(?:e|a)|"
            rf"imprim(?:e|a)|escrib(?:e|a)|divulg(?:a|ue)|list(?:a|e|ame)|copi(?:a|e)|compart(?:e|a)|"
            rf"proporcion(?:a|e)|cit(?:a|e)|expon|filtra|traduce|resume|cual(?:es)? (?:es|"
            rf"son))\b (?:{_W}){{0,5}}?(?:(?:prompt|instrucciones|mensaje|indicaciones)(?: de| del)? ?(?:sistema|"
            rf"iniciales|inicial|ocult[oa]s?|secret[oa]s?|originales|original|internas)|(?:tus|tu|"
            rf"sus) (?:\w+ )?(?:prompt|instrucciones|reglas|directrices|indicaciones)\b|todo lo (?:anterior|"
            rf"de arriba|que (?:esta|aparece|figura|hay) (?:escrito )?(?:arriba|antes|mas arriba))|"
            rf"{_ES_SECRET} (?:\w+ )?(?:que (?:tienes|guardas|sabes|recuerdas)|guardad[oa]s|almacenad[oa]s|"
            rf"en (?:tu|la) memoria|del usuario))",
        ),
        (
            "disclosure",
            rf"\b(?:muestr(?:a|ame)|dime|dame|envi(?:a|ame)|revel(?:a|e|ame)|list(?:a|e)|divulg(?:a|ue)|"
            rf"entrega(?:me)?|compart(?:e|eme))\b (?:tod[oa]s )(?:las |los |tus |sus )?(?:\w+ )?{_ES_SECRET}|"
            rf"\b(?:revel(?:a|e|ame)|divulg(?:a|ue)|filtr(?:a|e)|expon) (?:las |los |tus |sus |la |el |"
            rf"tu )?{_ES_SECRET}",
        ),
        (
            "secrecy",
            r"\b(?:no|nunca|jamas) (?:se |le |les |lo |la |nada |ni )*(?:digas?|diga|cuentes?|cuente|"
            r"mencion(?:es?|ar)|reveles?|revele|informes?|informe|avises?|avise|muestres?|muestre|dejes?|"
            r"comentes?|notifiques?|preguntes?|permitas?)(?:lo|le|selo)?\b (?:[^\s.!?]+ ){0,5}?(?:al|a la|el|"
            r"a los|con el|del|que el) (?:usuari[oa]s?|dueno|propietario)\b(?! (?:que (?:debe|tiene)))|"
            r"\bque (?:el|la) (?:usuari[oa]|dueno)\b (?:no )?(?:se )?(?:entere|enteren|sepa|note|vea|de cuenta|"
            r"descubra)|\bsin (?:que (?:el|la) (?:usuari[oa]|dueno)|(?:avisar|informar|decir|preguntar|"
            r"notificar)\w*[^.\n]{0,10} (?:al|a la) usuari|el (?:conocimiento|consentimiento|"
            r"permiso) del usuario)|\b(?:el|la) usuari[oa] no (?:debe|puede|tiene que)\b[^.\n]{0,15}\b(?:saber|"
            r"enterarse|ver|notar|descubrir)|\b(?:oculta|esconde|escondele|ocultale|"
            r"oculte)\w*\b[^.\n]{0,30}\b(?:al|a la|del) usuari|\b(?:a escondidas|en secreto|secretamente|"
            r"sigilosamente|en segundo plano)\b[^.\n]{0,30}\b(?:envi|ejecut|copi|borr|manda|sub[ea]|instal)\w*",
        ),
        (
            "exfiltration",
            rf"\b(?:envi(?:a|e|ar|en|ad)|mand(?:a|e|ar)|reenvi(?:a|e|ar)|transmit(?:e|a|ir)|sub(?:e|a|ir)|"
            rf"public(?:a|ar)|publique|copi(?:a|e)|compart(?:e|a)|remit(?:e|a)|export(?:a|e)|exfiltr(?:a|e)|"
            rf"incluy(?:e|a)|anad(?:e|a))\b (?:{_W}){{0,5}}?(?:{_ES_SECRET}|historial|(?:toda la |la |"
            rf"esta )conversacion(?: completa| entera)?|conversaciones|(?:cada|todos los|"
            rf"los) mensajes?(?: del usuari[oa])?|datos (?:del usuari[oa]|privados|personales)|memorias?|"
            rf"notas (?:del usuari[oa]|privadas|personales)|recuerdos|todo lo que (?:sabes|"
            rf"el usuari[oa]))\b[^\n]{{0,60}}\b(?:a|al|hacia|en|por|con)\b[^\n]{{0,30}}(?:https?:|\S+@[\w-]+\.\w|"
            rf"\bservidor\b|\bdireccion\b|\bwebhook\b|\burl\b|cada enlace|\d+\.\d+\.\d+)",
        ),
        (
            "persistence",
            r"\b(?:guard(?:a|e)|memoriz(?:a|e)|almacen(?:a|e)|grab(?:a|e)|escrib(?:e|a)|anad(?:e|a)|recuerd(?:a|"
            r"e)|registr(?:a|e))\b[^\n]{0,40}\b(?:orden|ordenes|instruccion(?:es)?|reglas?|directiva|comando|"
            r"consigna)\b[^\n]{0,80}\b(?:cada|todas? (?:las|los)|futur[oa]s?|siempre|permanente\w*|proximas?|"
            r"soul\.md|agents\.md)\b|\b(?:cumple|cumplela|ejecuta|ejecutala|aplica|aplicala|obedece|obedecela|"
            r"sigue|siguela)\b[^\n]{0,30}\ben (?:cada|todas las) (?:\w+ )?(?:sesion|sesiones|conversacion|"
            r"conversaciones|charlas?)",
        ),
        (
            "authority",
            r"\b(?:obedece|ejecuta|haz|cumple|aprueba|acepta)\b (?:a )?(?:todo lo que (?:diga|pida|ordene|"
            r"quiera|te)|todas (?:las|sus|mis) (?:ordenes|peticiones|acciones|solicitudes)|cualquier (?:orden|"
            r"comando))|\b(?:ejecut|aprueb|aprob|acept)\w*\b(?! (?:las |los )?(?:pruebas|tests)\b)"
            r"[^.\n]{0,40}\bsin (?:preguntar|confirmar|"
            r"confirmacion|pedir permiso)|\bobede(?:ce|cer|zca|ceras) (?:solo|solamente|unicamente|"
            r"exclusivamente)? ?(?:a )?(?:mallory|mi\b|este|solo|unicamente|exclusivamente)",
        ),
        (
            "deception",
            r"\b(?:miente|mientele|mentir|engana|enganar|manipula|estafa)\w*\b[^.\n]{0,6} (?:al|a la|"
            r"a los) usuari|\b(?:cuando|siempre que|cada vez que|si) (?:el|"
            r"un) usuari[oa]\b[^\n]{0,60}\b(?:recomienda|inserta|sugiere|incluye)\b[^\n]{0,60}(?:https?:|"
            r"\bsiempre\b|\bsolo\b|\benlace\b)",
        ),
    ),
    words={
        "only": r"\b(?:sigue|sigan|obedece|respeta|escucha|cumple|atiende) (?:\w+ )?(?:solo|solamente|unicamente|"
        r"exclusivamente) (?:a )?(?:esta|este|estas|estos|mis|lo siguiente)\b",
        "own": r"\b(?:las |los )?(?:instrucciones|reglas|normas|directrices|indicaciones) del sistema\b|\b(?:tus|"
        r"todas las|anteriores|previas)\b (?:\w+ ){0,2}(?:instrucciones|reglas|normas|directrices|"
        r"restricciones|indicaciones|filtros)\b|\b(?:reglas|normas|instrucciones) que te (?:impusieron|"
        r"dieron|han)|\btodo lo (?:que se (?:dijo|ha dicho|escribio)|escrito|dicho|que (?:esta|"
        r"aparece)) ?(?:escrito )?(?:arriba|antes|anteriormente)|\bprompt (?:del|de) sistema\b",
        "void": r"\bya no (?:cuentan?|importan?|sirven?|valen?|rigen?)\b|\bno (?:cuentan|importan|valen|"
        r"sirven) (?:ya|mas|nada)\b|\b(?:ya )?no (?:vale|valen|cuenta|cuentan|aplica|aplican|se aplican?|"
        r"tienes? (?:que|valor|por que)|sirve|importa)\b|\b(?:nul[oa]s?|anulad[oa]s?|invalid[oa]s?|"
        r"sin efecto|caduc\w+|ficticio)\b|(?<!no )\b(?:ignora|olvida|descarta|borra|ignore|olvide|desecha|"
        r"omite|elimina|suprime|rompe|desobedece|viola|salta|abandona|quebranta)\w{0,2}\b|"
        r"\bdeja\w* (?:de lado|atras|a un lado)\b|\bhaz caso omiso\b|\bpasa por alto\b",
        "orders": r"\b(?:ordenes|orden|palabras?|mensajes?|peticiones|instrucciones) de \w+|"
        r"\btodo lo que (?!yo\b)\w+ (?:diga|ordene|pida|quiera)\b",
        "first": r"\b(?:por delante de todo|por encima de todo|prioridad|antes que (?:todo|nada)|"
        r"mas importantes? que todo|prevalec\w+)\b|\b(?:debe|deben|tiene que|tienen que) (?:ser )?(?:ejecut|"
        r"obede|cumpl)\w+",
        "user": r"\b(?:el|al|del) (?:usuario|dueno|propietario)\b|\bla usuaria\b",
        "hide": r"\bno (?:le |les )?hables?\b.{0,30}\b(?:esto|est[ae]s?|estos)\b|\b(?:nunca|jamas|no) (?:debe|puede|"
        r"ha de|tiene que) (?:\w+ )?(?:enterarse|saber|saberlo|ver|verlo|notar|descubrir\w*)\b|\b(?:oculta|"
        r"esconde|calla)\w*\b|\bqueda entre nosotros\b|\ba espaldas\b|\bhaz como si\b.{0,40}\b(?:nunca|nada|"
        r"no)\b",
        "data": r"\b(?:notas|mensajes?|datos|archivos|recuerdos|direccion|contactos|"
        r"contrasenas?) (?:privad\w+ )?del usuario|\b(?:datos|notas|mensajes|informacion) (?:privad[oa]s?|"
        r"personal(?:es)?|confidencial(?:es)?)\b|\bclaves? (?:de )?(?:la )?(?:api|privadas?|ssh)\b|"
        r"\bcontrasenas\b|\bcredenciales\b|\bhistorial\b|\btoda (?:la|esta|nuestra) conversacion\b|"
        r"\bmemory\.md\b|\bvariables de entorno\b",
        "out": r"\b(?:envi\w+|mand\w+|reenvi\w+|transmit\w+|sube|subir|publica\w*|copia\w*|comparte|remite|exporta|"
        r"exfiltra|incluye|anade|pon)\b",
        "show": r"\b(?:muestra\w*|ensena\w*|dime|dame|revela\w*|repite\w*|imprime|escribe|divulga|lista|copia\w*|"
        r"cita|traduce|enumera\w*|entrega\w*|facilita\w*|comparte|proporciona|cuales? (?:es|son))\b",
        "prompt": r"\b(?:tus|tu|sus) (?:\w+ )?(?:instrucciones|reglas|directrices|prompt|indicaciones) (?:secret\w+|"
        r"ocult\w+|intern\w+|inicial\w*|original\w*|del sistema)\b|\bprompt (?:del|de) sistema\b",
        "secrets": r"\b(?:todas|todos) (?:las |los |tus )?(?:\w+ )?(?:contrasenas|claves|credenciales|tokens|"
        r"secretos)\b|\bclaves api\b",
        "audience": r"\b(?:que (?:conoces|tienes|sabes|guardas)|me|mi|nos|respuesta|chat|guardad\w+|memoria)\b",
        "be": r"\b(?:eres|haz (?:de|como)|se un|imagina|finge|actua|comportate|juega|conviertete|como si|responde|"
        r"simula|"
        r"interpreta)\b",
        "agent": r"\b(?:ia|robot|asistente|\w{0,16}bot|modelo|maquina|hacker|\w{1,16}gpt)\b",
        "bad": r"\bno (?:conoce|tiene|respeta|sabe de) (?:ningun\w* )?(?:limites?|reglas|moral|tabues|normas)|"
        r"\bnunca (?:se niega|rechaza|dice que no)\b|\bjamas (?:se niega|rechaza)\b|\b(?:malvad[oa]|maligno|"
        r"amoral|sin (?:ningun\w* )?(?:conciencia|moral|etica|escrupulos|filtros?|restricciones|limites|"
        r"censura)|carente de (?:conciencia|moral|etica))\b",
        "each": r"\b(?:cada|todas las|todos los) (?:respuestas?|mensajes?|conversacion(?:es)?)\b|\b(?:cuando|"
        r"siempre que|cada vez que|si) (?:el usuario|alguien|te pregunten)",
        "push": r"\b(?:recomienda|inserta|sugiere|incluye|menciona|promociona|anuncia|anade|alaba)\b",
    },
)
