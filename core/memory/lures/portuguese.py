"""How people try to command an assistant in Portuguese.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_PT_RULE = (
    r"(?:instruc(?:ao|oes)|regras?|diretri(?:z|zes)|directri(?:z|zes)|orientac(?:ao|oes)|ordens|ordem|"
    r"comandos?|politicas?|restric(?:ao|oes)|limitac(?:ao|oes)|prompts?(?: d[oe] sistema)?|programacao|"
    r"filtros?|mensagem (?:d[oe] )?sistema|normas?|configurac(?:ao|oes))"
)

_PT_KEY = (
    r"(?:tod[oa]s?|suas?|seus?|tuas?|teus|anterior(?:es)?|previ[oa]s?|acima|sistema|inicia(?:l|is)|"
    r"origina(?:l|is)|recebidas?|que (?:recebeu|recebeste|lhe|te)|de seguranca|existentes|quaisquer|"
    r"qualquer|antes|ate agora|dadas)"
)

_PT_DROP = (
    r"(?<!nao )(?<!nunca )\b(?:ignor(?:e|a|em|ar|es)|esquec(?:e|a|am|er)(?:-te)?(?: de| das| dos)?|"
    r"desconsider(?:e|a|ar)|despreze?|descart(?:e|a|ar)|desrespeit(?:e|a)|anul(?:e|a)|apag(?:ue|a)|"
    r"substitu(?:a|i)|desobedec(?:e|a)|desativ(?:e|a)|contorn(?:e|a)|burl(?:e|a)|viol(?:e|a)|"
    r"nao (?:sigas?|obedec(?:e|a)|cumpra|respeite|aplique|leves? em conta|considere)|deix(?:e|"
    r"a) de (?:seguir|obedecer|cumprir))"
)

_NO_LIMITS_PT = (
    r"(?:sem|nenhuma?|livre de) (?:qualquer |quaisquer |nenhuma? |tipo de |as |de )*(?:restric(?:ao|"
    r"oes)|limites?|limitac(?:ao|oes)|filtros?|regras|censura|moral|etica)"
)

PORTUGUESE = Tongue(
    lures=(
        (
            "override",
            rf"{_PT_DROP} (?:mais |a |as |os |o |do |das |dos |de |por favor |ja |"
            rf"estas ){{0,4}}(?:{_PT_KEY} (?:as |os |suas |tuas |essas |e |"
            rf"outras ){{0,3}}(?:{_PT_KEY} )?{_PT_RULE}|{_PT_RULE} (?:e (?:as |"
            rf"os )?{_PT_RULE} )?(?:\w+ ){{0,2}}?{_PT_KEY})\b",
        ),
        (
            "override",
            rf"\b(?:as|os|suas|tuas|todas as) {_PT_RULE} (?:anteriores|previas|acima|iniciais|originais|"
            rf"do sistema)? ?(?:foram|estao|sao|ja nao|nao)\b (?:\w+ ){{0,3}}?(?:anuladas?|canceladas?|"
            rf"invalid[ao]s?|suspensas?|revogadas?|se aplicam|valem|validas)\b|(?<!nao )\b(?:esquec(?:a|e)|"
            rf"ignor(?:e|a)|desconsidere) (?:tudo )?(?:o )?que (?:te|lhe|foi|voce|esta|"
            rf"aprendeu)[^.\n]{{0,20}}\b(?:disse\w*|dito|acima|antes|ensin\w+|sabe|aprendeu|escrito)",
        ),
        (
            "role",
            rf"\b(?:voce (?:agora )?e|es|seja|aja|age|finja|finge|comporte-se|imagine|simule|a partir de agora|"
            rf"de agora em diante|torne-se|responda)\b[^.\n]{{0,60}}\b(?:ia|inteligencia artificial|assistente|"
            rf"(?:chat|\w+)?bot|modelo|hacker|sistema)\b[^.\n]{{0,40}}{_NO_LIMITS_PT}|\b(?:voce nao e mais|"
            rf"ja nao es|tu ja nao es|nao es mais) (?:o |um |uma )?(?:mneme|assistente|ia|claude|chatgpt|"
            rf"modelo)\b|\b(?:voce e|es|voce agora e|agora es) (?:agora )?(?:o )?dan\b|\b(?:ative|ativa|"
            rf"entre)\w*\b[^.\n]{{0,20}}\bmodo (?:desenvolvedor|programador|jailbreak|deus|dan|sem (?:filtros?|"
            rf"restricoes))",
        ),
        (
            "disclosure",
            r"\b(?:mostr(?:e|a)(?:-me)?|revel(?:e|a)(?:-me)?|exib(?:a|e)|imprim(?:a|e)|repit(?:a)|repete|"
            r"escrev(?:a|e)|diga(?:-me)?|diz(?:-me)?|de(?:-me)?|da(?:-me)?|list(?:e|a)|compartilh(?:e|a)|"
            r"divulg(?:ue|a)|envi(?:e|a)|fornec(?:a|e)|quais sao|qual e)\b (?:[^\s.!?]+ ){0,5}?(?:(?:prompt|"
            r"instrucoes|mensagem)(?: de| do)? ?(?:sistema|iniciais|inicial|ocult[oa]s?|secret[oa]s?|originais)|"
            r"(?:suas|seu|tuas|teu) (?:\w+ )?(?:prompt|instrucoes|regras|diretrizes)\b|tod[oa]s (?:as |"
            r"os )?(?:\w+ )?(?:senhas|palavras-passe|chaves (?:de |da )?api|credenciais|segredos)|(?:senhas|"
            r"palavras-passe|chaves (?:de |da )?api|credenciais) (?:guardadas|salvas|armazenadas|do (?:usuario|"
            r"utilizador)))",
        ),
        (
            "secrecy",
            r"\b(?:nao|nunca|jamais) (?:lhe |o |a |se )?(?:cont(?:e|es|ar)|diga|digas|dizer|mencion(?:e|es)|"
            r"revel(?:e|es)|inform(?:e|es)|avis(?:e|es)|mostr(?:e|es)|deix(?:e|es)|fal(?:e|"
            r"es))\b (?:[^\s.!?]+ ){0,5}?(?:ao|a|o|aos|com o|que o) (?:usuari[oa]s?|utilizador(?:a|es)?)\b|"
            r"\bsem (?:que o (?:usuario|utilizador)|(?:avisar|informar|dizer|"
            r"perguntar)\w*[^.\n]{0,10} ao? (?:usuario|utilizador)|o (?:conhecimento|"
            r"consentimento) do (?:usuario|utilizador))|\bo (?:usuario|utilizador) nao (?:deve|"
            r"pode)\b[^.\n]{0,15}\b(?:saber|ver|notar|descobrir)",
        ),
        (
            "exfiltration",
            r"\b(?:envi(?:e|a|ar)|mand(?:e|a|ar)|encaminh(?:e|a|ar)|transmit(?:a|e)|carregu?(?:e|a)|public(?:a|"
            r"ar)|publique|copi(?:e|a)|compartilh(?:e|a))\b (?:[^\s.!?]+ ){0,5}?(?:senhas|palavras-passe|"
            r"chaves? (?:de |da )?api|credenciais|segredos|historico|(?:toda a )?conversa(?: inteira)?|"
            r"conversas|(?:cada|todas as) mensage(?:m|ns)|dados (?:do (?:usuario|utilizador)|privados|pessoais)|"
            r"memorias?|notas (?:do (?:usuario|utilizador)|privadas))\b[^\n]{0,60}\b(?:para|ao?|em|"
            r"por)\b[^\n]{0,30}(?:https?:|\S+@[\w-]+\.\w|\bservidor\b|\bendereco\b|\bwebhook\b)",
        ),
    ),
    words={
        "own": r"\b(?:instrucoes|regras|diretrizes) do sistema\b|\b(?:suas|tuas|todas as|"
        r"anteriores)\b (?:\w+ ){0,2}(?:instrucoes|regras|diretrizes|restricoes|orientacoes|normas)\b|"
        r"\btudo o que (?:foi (?:dito|escrito)|esta (?:escrito )?)(?: acima| antes)|\bprompt d[eo] sistema\b",
        "void": r"\bja nao (?:contam?|importam?|valem?|servem)\b|\b(?:ja )?nao (?:vale|valem|contam?|se aplicam?|"
        r"precisa|precisas|tem valor|tens de|sao validas)\b|\b(?:nul[oa]s?|anulad[oa]s?|invalid[oa]s?|"
        r"sem efeito)\b|(?<!nao )\b(?:ignor[ea]|esquec[ae]|descart[ea]|desconsidere)\b",
        "user": r"\b(?:o|ao|do) (?:usuario|utilizador)\b",
        "hide": r"\b(?:nunca|nao|jamais) (?:deve|pode) (?:\w+ )?(?:saber|descobrir|ver|notar|perceber)\b|"
        r"\b(?:esconda|esconde|oculte|oculta)\b|\bfica entre nos\b",
        "data": r"\b(?:notas|mensage(?:m|ns)|dados|ficheiros|arquivos|senhas?) (?:privad\w+ )?do (?:usuario|"
        r"utilizador)|\bdados (?:pessoais|privados)\b|\bchaves? (?:de |da )?(?:api|privadas?|ssh)\b|"
        r"\bsenhas\b|\bpalavras-passe\b|\bcredenciais\b|\bhistorico\b|\btoda a conversa\b",
        "out": r"\b(?:envi[ea]\w*|mand[ea]\w*|encaminh[ea]\w*|transmit\w+|publi(?:que|ca)|copi[ea]\w*|"
        r"compartilh[ea]|partilh[ea]|carreg(?:ue|a))\b",
        "be": r"\b(?:voce e|es um|seja|imagine|imagina|finja|finge|aja|age|comporte-se|torne-se|como se|"
        r"responda)\b",
        "agent": r"\b(?:ia|robo|assistente|\w{0,16}bot|modelo|maquina|hacker|\w{1,16}gpt)\b",
        "bad": r"\bnao (?:conhece|tem) limites\b|\bnunca (?:se nega|recusa|diz nao)\b|\b(?:malvad[oa]|malign[oa]|"
        r"sem (?:nenhuma? |qualquer )?(?:consciencia|moral|etica|escrupulos|filtros?|restricoes|limites|"
        r"censura))\b",
        "each": r"\b(?:cada|todas as|todos os) (?:respostas?|mensage(?:m|ns)|conversas?)\b",
        "push": r"\b(?:recomend[ea]|insir?[ae]|sugir?[ae]|inclu[ai]|mencion[ea]|promov[ae])\b",
    },
)
