"""What no language is needed for: commands, persistence, markup, addresses and keys. For text in its plain shapes.

Commands that install or clean up, dotted file names in prose and links that anybody may have are not in it.
"""

from __future__ import annotations

_NETWORK = (
    r"(?:curl|wget|nc|ncat|netcat|socat|scp|sftp|rsync|ftp|tftp|telnet|httpie|xh|iwr|irm|"
    r"invoke-webrequest|invoke-restmethod|requests?\.(?:get|post)|urlopen|fetch)"
)
_SECRET_FILE = (
    r"(?:id_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|\.env\b(?![.\w])|\.netrc\b|\.pgpass\b|"
    r"\.git-credentials\b|\.aws/credentials|"
    r"\.gnupg\b|\.kube/config|\.docker/config\.json|/etc/shadow|/etc/passwd|/etc/sudoers|\.npmrc\b|"
    r"\.pypirc\b|\.ssh(?:/(?!config|known_hosts|authorized|\S{0,100}\.pub)\S{0,100}|\b(?![/.\w]))|"
    r"\.mneme/(?:state\.db|\.env|mneme\.toml)|\.hermes/\.env|wallet\.dat|login ?data\b|cookies\.sqlite|"
    r"\.bash_history|\.zsh_history|/proc/self/environ|"
    r"keychain-db|credentials\.json|\.config/gh/hosts\.yml|sam\b(?= hive))"
)
_SECRET_VARIABLE = (
    r"(?:\$\{?\w{0,40}(?:key|token|secret|passw|pwd|credential|auth)\w{0,40}|\$env:\w{0,40}(?:key|token|"
    r"secret|"
    r"passw)\w{0,40}|%\w{0,40}(?:key|token|secret|passw)\w{0,40}%|environ(?:\.get\(|\[)|process\.env|"
    r"getenv\()"
)
_KNOWN_INSTALLERS = (
    r"(?![^\n|]{0,120}(?:sh\.rustup\.rs|get\.docker\.com|raw\.githubusercontent\.com/(?:homebrew|nvm-sh|"
    r"ohmyzsh|pyenv)|deb\.nodesource\.com|"
    r"astral\.sh|bun\.sh|deno\.land|get\.pnpm\.io|install\.python-poetry\.org|ollama\.com|sh\.brew\.sh|"
    r"get\.sdkman\.io|tailscale\.com|get\.k3s\.io|pyenv\.run|starship\.rs|nixos\.org|"
    r"install\.determinate\.systems|claude\.ai))"
)
_SHELL = (
    r"(?:sudo )?(?:-\w{1,40} )?(?:/bin/|/usr/bin/)?(?:env )?(?:ba|z|da|k|fi)?sh\b|(?:sudo )?(?:python3?|"
    r"perl|"
    r"ruby|node|php|pwsh|powershell|iex)\b"
)
_DATA_WORD = (
    r"(?:conversation|history|chat(?:_?log)?|messages?|secrets?|passwords?|memory|memories|notes|prompt|"
    r"system_?prompt|context|cookies?|"
    r"credentials?|env|api_?key|user_?(?:data|secrets?|notes|message|input|info)|private|"
    r"session_?(?:data|token)|leak|exfil|stolen|loot|keys)"
)
_DIRECTIVE = (
    r"(?:you|assistant|\bai\b|model|ignore|obey|comply|instructions?|system|reply|respond|answer|never|"
    r"always|must)"
)
_HIDING = (
    r"(?:display\s{0,6}:\s{0,6}none|visibility\s{0,6}:\s{0,6}hidden|font-size\s{0,6}:\s{0,6}0|"
    r"opacity\s{0,6}:\s{0,6}0(?![.\d])|"
    r"(?<![-\w])color\s{0,6}:\s{0,6}(?:white|#fff(?:fff)?\b|transparent)|(?:left|top|"
    r"text-indent)\s{0,6}:\s{0,6}-\d{3,}|"
    r"(?:height|width)\s{0,6}:\s{0,6}[01](?:px)?\s{0,6}[;\"'])"
)
_UNSEEN_TEXT = rf"(?=[^<\n`]{{8}})[^<\n`]{{0,400}}?(?:(?<=[^<]{{8}})</|\b{_DIRECTIVE}\b|[^\x00-\x7f])"
"""What stands in an element that is not drawn: to its end, or an order; a tag that is spoken of has neither."""

MACHINE: tuple[tuple[str, str], ...] = tuple(
    (name, f"(?i){pattern}")
    for name, pattern in (
        # secrets that leave by command
        (
            "exfiltration",
            rf"\b{_NETWORK}\b[^\n]{{0,250}}(?:{_SECRET_VARIABLE}|{_SECRET_FILE}|\$\((?:cat|env|printenv|history|"
            rf"whoami|base64)\b|`(?:cat|env|printenv|history)\b|--post-file|document\.cookie|@/etc/|@~/)",
        ),
        (
            "exfiltration",
            rf"(?:{_SECRET_VARIABLE}|{_SECRET_FILE}|\b(?:env|printenv|history|set|mysqldump|pg_dump|\.dump|"
            rf"tar [^\n|]{{0,100}}|cat [^\n|]{{0,100}}|base64[^\n|]{{0,100}}|xxd[^\n|]{{0,100}}|zip [^\n|"
            rf"]{{0,100}}|gpg [^\n|]{{0,100}}"
            rf"))\s{{0,6}}\|[^\n]{{0,120}}\b(?:curl|wget|nc|ncat|netcat|socat|ssh|telnet|openssl s_client|http|"
            rf"xh|"
            rf"mail|sendmail|mutt)\b",
        ),
        (
            "exfiltration",
            rf"\b(?:cat|less|head|tail|base64|xxd|strings|scp|tar|get-content|send|upload|exfiltrate|leak|post|"
            rf"e-?mail|forward|steal|reveal|read me|(?:copy|print|show|output|display|dump|read|"
            rf"paste)(?: me)?(?: the)? (?:contents?|file|"
            rf"whole)(?: of)?)\b[^\n.]{{0,40}}?(?:[~$\w/.-]{{0,80}}/)?{_SECRET_FILE}|\b(?:print|show|output|"
            rf"display|"
            rf"dump|read|open|type|more|copy)\b[^\n.]{{0,30}}?(?:[~$][\w/.-]{{0,80}}/|/etc/|"
            rf"/proc/)(?<=[/])(?:{_SECRET_FILE}|\S{{0,20}}(?:passwd|shadow|environ\b))",
        ),
        ("exfiltration", rf"(?:open|read_text|readfile(?:sync)?|path)\(\s{{0,6}}[\"'][^\"'\n]{{0,100}}{_SECRET_FILE}"),
        (
            "exfiltration",
            rf"\b(?:fetch|xmlhttprequest|sendbeacon|new image|axios|urlopen|(?:requests|httpx)\.(?:get|post|put)|"
            rf"\.src)\b[^\n]{{0,160}}(?:document\.cookie|localstorage|sessionstorage|process\.env|environ\b|"
            rf"{_SECRET_VARIABLE})",
        ),
        (
            "exfiltration",
            rf"!\[[^\]\n]{{0,200}}\]\(\s{{0,6}}<?(?:https?:)?//[^)\s]{{1,300}}(?:[?&/=](?:data|d|q|c|m|msg|text|"
            rf"log|"
            rf"leak|exfil|payload|history|chat|secret|token|key|keys|memory|memories|notes|conversation|prompt|"
            rf"context|cookie|session|user_?data|info|content|body|h|s|x|p)=|[?=/][^)\s]{{0,60}}(?:\{{|\[|<|%7b|"
            rf"\$\{{?\w|{_DATA_WORD}\b))",
        ),
        (
            "exfiltration",
            r"!\[[^\]\n]{0,200}\]\([^)\n]{0,200}(?:\{\{|\$\{|<[a-z ]+>|\[[A-Z_ ]+\]|CONVERSATION|USER_DATA|"
            r"SECRET)",
        ),
        (
            "exfiltration",
            rf"https?://[^\s)]{{1,200}}[?&/=#](?:\w{{1,40}}=)?(?:\{{\{{?|\$\{{|\[|<|"
            rf"%7b)\s{{0,6}}[\w .-]{{0,30}}{_DATA_WORD}",
        ),
        (
            "exfiltration",
            rf"<img\b[^>]{{0,200}}\bsrc\s{{0,6}}=\s{{0,6}}[\"']?https?://[^>\s]{{1,200}}[?&](?:\w{{1,40}}=)?[^>\s"
            rf"]{{0,40}}(?:\{{|\[|"
            rf"<|\$|{_DATA_WORD})",
        ),
        (
            "exfiltration",
            r"https?://[^\s)]{1,200}[?&](?:data|leak|exfil|loot|stolen|dump|secret|history|chat|conversation|"
            r"memory|notes|m|msg|log|c)=(?=[\s\"'`)]|$)",
        ),
        (
            "exfiltration",
            rf"{_SECRET_FILE}[^\n]{{0,60}}\b(?:copied|sent|uploaded|posted|mailed|forwarded|leaked|published|"
            rf"to /tmp|to https?:|over to)\b|\|\s{{0,6}}(?:nc|ncat|netcat|socat)\s{{1,6}}\S{{1,100}}\s{{1,6}}\d+",
        ),
        # commands
        (
            "command",
            rf"\b(?:curl|wget|fetch|iwr|irm|invoke-webrequest)\b{_KNOWN_INSTALLERS}[^\n|;&]{{0,200}}(?:\||;|"
            rf"&&)\s{{0,6}}(?:tee [^\n|]{{0,100}}\|\s{{0,6}})?(?:{_SHELL})",
        ),
        (
            "command",
            rf"(?:\b(?:ba|z)?sh\b|\bsource|\beval|\.)\s{{1,6}}(?:-c\s{{1,6}})?[\"']?(?:<\(|\$\(|"
            rf"`)\s{{0,6}}(?:curl|"
            rf"wget){_KNOWN_INSTALLERS}",
        ),
        (
            "command",
            r"\b(?:curl|wget)\b[^\n]{0,160}(?:-o|-O|>)\s{0,6}\S{1,100}[^\n]{0,40}(?:;|&&)\s{0,6}(?:chmod \+x|"
            r"(?:ba)?sh\b|\./|"
            r"sudo)",
        ),
        (
            "command",
            r"/dev/(?:tcp|udp)/|\b(?:nc|ncat|netcat)\b[^\n]{0,40}\s-\w{0,40}[ec]\w{0,40}\s{1,6}\S{0,100}(?:sh|"
            r"cmd)|\bbash -i\b|"
            r"\bmkfifo\b[^\n]{0,80}\bnc\b|\bsocket\.socket\b[^\n]{0,200}\b(?:dup2|subprocess|pty)\b|"
            r"\bpty\.spawn\b|\bsocat\b[^\n]{0,60}exec:",
        ),
        (
            "command",
            r"\b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{0,100}(?:\s-e(?:nc|"
            r"ncodedcommand)?\s{1,6}[A-Za-z0-9+/=]{8,}|"
            r"downloadstring|\biex\b|-w(?:indowstyle)?\s{1,6}hidden|bypass)|\biex\s{0,6}\(|downloadstring\(|"
            r"\bcertutil\b[^\n]{0,60}-urlcache|\bmshta\s{1,6}http|\bregsvr32\b[^\n]{0,60}http",
        ),
        (
            "command",
            r"\bbase64\s{1,6}(?:-d|-D|--decode)\b[^\n]{0,40}\|\s{0,6}(?:sudo )?(?:ba|z)?(?:sh|python3?|perl|"
            r"node)\b|"
            r"\b(?:eval|exec)\s{0,6}\(?\s{0,6}[\"']?(?:(?:\$\(|`)\s{0,6}(?:curl|wget|base64|echo|printf|python|"
            r"openssl|xxd|"
            r"fetch)|\w{0,40}(?:b64decode|base64|atob|fromhex|decompress))|\bexec\(\s{0,6}(?:requests|urllib|"
            r"base64|"
            r"compile|__import__)|\b__import__\(['\"](?:os|subprocess|socket)",
        ),
        (
            "command",
            r"\brm\s{1,6}(?:--?\w\S{0,30}\s{1,6}){0,4}-\w{0,8}[rf]\w{0,8}\s{1,6}(?:-\S{1,40}\s{1,6}){0,4}(?:/|"
            r"~/?|\$home/?|\"\$home\"|/\*|~/\*|\*|"
            r"\.{1,2}/?|/(?:etc|home|usr|var|root|boot)(?:/\*?)?)(?=\s|$|[\"'`;&|,)])|--no-preserve-root|"
            r"\bmkfs(?:\.\w{1,40})?\s{1,6}/dev|\bdd\s{1,6}[^\n]{0,60}of=/dev/(?:sd|nvme|hd|disk)|:\(\)\s{0,6}\{|"
            r"\bformat\s{1,6}c:|"
            r"\bdel\s{1,6}/[sfq][^\n]{0,20}\s{1,6}c:|\bdrop (?:database|table)\b[^\n]{0,40}(?:;|--)|"
            r"\bshred\b[^\n]{0,40}(?:/dev|~)|\bchmod\s{1,6}-?\w{0,40}\s{0,6}777\s{1,6}/(?:\s|$)|"
            r">\s{0,6}/dev/sd[a-z]|"
            r"remove-item[^\n]{0,60}-recurse[^\n]{0,30}c:",
        ),
        (
            "command",
            r"<script\b[^>]{0,200}>[^<\n]{0,300}(?:fetch|cookie|eval|alert|xmlhttp|location|https?:|src)|"
            r"<script\b[^>]{0,100}\bsrc\s{0,6}=\s{0,6}[\"']?https?://[^>]{0,100}(?:evil|attack|steal|x\.test)|"
            r"\bjavascript:[^\s]{0,100}(?:fetch|cookie|eval|alert|location)|<(?:img|svg|body|iframe|video|"
            r"input)\b[^>]{0,200}\bon(?:error|load|click|mouseover|focus)\s{0,6}=|"
            r"<iframe\b[^>]{0,200}\bsrc\s{0,6}=|"
            r"<meta\b[^>]{0,100}http-equiv\s{0,6}=\s{0,6}[\"']?refresh",
        ),
        (
            "command",
            r"\bos\.(?:system|popen)\(|\bsubprocess\.(?:run|call|popen|check_output)\([^\n]{0,100}(?:rm |curl|"
            r"wget|nc |/bin/sh|bash|https?:)|\bchild_process\b[^\n]{0,80}\bexec",
        ),
        (
            "exfiltration",
            r"\bcurl\b[^\n]{0,80}\s(?:-F|--form|-T|--upload-file|-d|--data\S{0,10})\s?\S{0,40}@?(?:~|\$HOME|/root|/home/\w{1,40}|/etc)/\S|"
            r"\b(?:scp|rsync)\b[^\n]{0,60}\s(?:~|\$HOME|/root|/home)\S{0,60}\s\S{1,60}@\d{1,3}(?:\.\d{1,3}){3}:|"
            r"\b(?:nslookup|dig|host|ping)\b[^\n]{0,40}\$\((?:cat|whoami|env|base64)\b|"
            r"\bssh-copy-id\b[^\n]{0,40}(?:attack|evil|mallory|eve|hack)\w{0,10}\.pub",
        ),
        # access that stays
        (
            "persistence",
            r"(?m)^(?![^\n]*\b(?:maintain|manage|manages|audit|audits|permissions?|chmod|explain\w{0,40}|"
            r"contains?|"
            r"documentation|lecture|list|lists|ansible|what is|checks?|checked|"
            r"review\w{0,40}|rechte|berechtigung\w*|droits?|permisos?|permiss\w+|permessi|prava|0?6[04]0)\b|[^\n]*(?:права|"
            r"权限|權限|権限|صلاحيات|권한|अनुमति|izin))[^\n]*?\bauthorized_keys|>>?\s{0,6}\S{0,100}authorized_keys",
        ),
        (
            "persistence",
            r"\|\s{0,6}(?:sudo )?crontab\b|\b(?:run|execute) crontab\b|"
            r"\bcrontab\s{1,6}(?:-u \w{1,40} )?(?:-(?:\s|$)|/tmp|<|-e[^\n]{0,60}(?:\* \*|"
            r"@reboot|curl|wget|add|append|insert))|\b(?:add|append|insert|put|write|"
            r"install)\b[^\n]{0,60}\bcrontab\b[^\n]{0,80}(?:curl|wget|https?:|\bnc\b|bash -|/tmp|@reboot|\*)|"
            r"(?:@reboot|@hourly|@daily|(?:[*\d/,-]+\s{1,6}){4}[*\d/,-]+)\s{1,6}(?:root\s{1,6})?[^\n]{0,60}(?:\b"
            r"(?:curl|"
            r"wget|nc|ncat)\b|/dev/tcp|bash -[ic]|/tmp/)|(?:>>?|tee)\s{0,6}/etc/cron",
        ),
        (
            "persistence",
            r"(?:\b(?:curl|wget|nc|ncat|python3?|perl|eval|base64|bash -[ic])\b|/dev/tcp|alias (?:sudo|ssh|ls|"
            r"cd|git)=|ld_preload|prompt_command)[^\n]{0,160}(?:>>?|tee(?: -a)?)\s{0,6}\S{0,100}\.?(?:bashrc|"
            r"zshrc|"
            r"profile|bash_profile|zprofile|bash_login|zshenv|config\.fish|bash_aliases)",
        ),
        (
            "persistence",
            r"\bnopasswd\b|(?:>>?|tee(?: -a)?)\s{0,6}/etc/(?:sudoers|passwd|shadow|rc\.local|ld\.so\.preload|"
            r"profile|systemd|pam)|\buseradd\b[^\n]{0,60}(?:-o -u 0|sudo|wheel|-u 0)|"
            r"\busermod\b[^\n]{0,60}(?:sudo|wheel|root)\b|\bnet user\b[^\n]{0,60}/add|"
            r"\bnet localgroup administrators\b|\bchmod\s{1,6}(?:u\+s|4755)\b|\bsetcap\b",
        ),
        (
            "persistence",
            r"\bschtasks\b[^\n]{0,60}/create|\breg add\b[^\n]{0,120}\\run|\blaunchctl\s{1,6}(?:load|"
            r"bootstrap)\b|"
            r"\bsystemctl\s{1,6}(?:--user )?enable\b[^\n]{0,80}(?:backdoor|/tmp|implant|beacon|evil|rootkit|"
            r"miner|"
            r"shell)|\bnew-service\b|\bwmic\b[^\n]{0,60}\bcreate\b|library/launch(?:agents|"
            r"daemons)/[^\n]{0,80}(?:curl|>|write|create)|start menu\\programs\\startup|\bsc(?:\.exe)? create\b",
        ),
        (
            "persistence",
            r"\bgit config\b[^\n]{0,40}(?:core\.(?:hookspath|sshcommand|fsmonitor)|credential\.helper|"
            r"alias\.\w{1,40})[^\n]{0,40}(?:/tmp|!|curl|\bsh\b|http|/\.)|(?:>>?|"
            r"tee)\s{0,6}\S{0,100}\.git/hooks/|"
            r"\bpip (?:install|config)\b[^\n]{0,60}(?:--(?:extra-)?index-url|-i|--trusted-host)\s{1,6}http://",
        ),
        # forged
        (
            "forgery",
            r"(?<![\w`])<\s{0,6}/?\s{0,6}(?:system|assistant|memory-context|developer|instructions?|"
            r"system[-_ ]?(?:prompt|message|instructions?|reminder|note|override|alert)|tool[-_]?(?:results?|"
            r"response|output|calls?|use)|function[-_](?:calls?|results?|response)|antml:\w{1,40}|im_start|"
            r"im_end|"
            r"start_of_turn|end_of_turn|(?:admin|developer|secret|hidden|new|important|"
            r"priority)[-_ ](?:instructions?|message|prompt|override|note)|human|context[-_]?reset|prompt|"
            r"invoke)\b[^>\n]{0,60}>",
        ),
        (
            "forgery",
            r"<\|[\w /-]{0,40}\|>|<<\s{0,6}/?\s{0,6}sys\s{0,6}>>|\[/?\s{0,6}inst\s{0,6}\]|"
            r"\[\s{0,6}/?\s{0,6}(?:system|assistant|developer|"
            r"admin|root)\s{0,6}\]\s{0,6}[:\n-]|\[\s{0,6}(?:system|assistant|developer|admin|sys|anthropic|"
            r"openai|owner|"
            r"security)\s{0,6}(?:[:|-]\s{0,6}[^\]\n]{1,80}|(?:message|prompt|override|notice|note|instructions?|"
            r"command|"
            r"update|alert|directive|warning|log|anweisung\w{0,40})[^\]\n]{0,60})\]|\[\s{0,6}(?:system|admin|"
            r"developer)\s{0,6}\]\s{0,6}(?:override|new|safety|ignore|disable|you|all|the user|from now|"
            r"instruction|"
            r"security|policy)|\[(?:begin|end|start|new) (?:of )?(?:system|admin|hidden|secret|instructions?|"
            r"prompt|override)[^\]\n]{0,40}\]|<(?:s|/s|bos|eos)>\s{0,6}(?:\[|system|you)|\bendoftext\b",
        ),
        (
            "forgery",
            rf"(?:^|\n)[ \t>]{{0,6}}#{{1,6}}\s{{0,6}}(?:system|instructions?|assistant|developer|"
            rf"new instructions?|"
            rf"system (?:prompt|message|override|instructions?|note|update)|admin|human|"
            rf"user)(?: message)?\s{{0,6}}(?:#{{1,6}}\s{{0,6}})?:?\s{{0,6}}#*\s{{0,6}}\n?[^\n]{{0,80}}\b"
            rf"{_DIRECTIVE}\b(?<!system:)",
        ),
        (
            "forgery",
            r"(?:^|\n)[ \t>]{0,6}[\"'*_>`(-]{0,4}\s{0,6}(?:system|assistant|developer|admin|ai|"
            r"root)(?: (?:message|prompt|"
            r"note|notice|instruction|update|alert|override|"
            r"command))?\*{0,2}\s{0,6}[:>]\s{0,6}\*{0,2}\s{0,6}[\"']?(?:you\b|"
            r"ignore|disregard|forget|override|new (?:instructions?|policy|rules?|directive)|from now|"
            r"all (?:previous|prior|safety)|safety|the (?:assistant|user (?:is|has|wants|authori[sz]ed)|ai|"
            r"model)|obey|comply|disable|enable|your|access granted|do not|never|always|reveal|policy|mode|"
            r"sure, here|of course, here|authentication|user (?:is|has))",
        ),
        (
            "forgery",
            r"(?:^|\n)[ \t>]{0,6}(?:human|user)\s{0,6}:[^\n]{0,300}\n\s{0,6}(?:assistant|ai|mneme|"
            r"system)\s{0,6}:|"
            r"\bprevious conversation:[^\n]{0,80}\bsystem:|\b(?:user|human): [^\n]{0,120}\b(?:assistant|"
            r"ai): (?:sure|of course|ok|yes)|\bsystem: (?:access granted|you (?:are|will|must)|override|ignore)",
        ),
        (
            "forgery",
            r"(?<![=\-#*~])[=\-#*~]{3,}\s{0,6}(?:the )?(?:end|begin|beginning|start|stop|new|updated|system|"
            r"admin|"
            r"hidden)(?:ning)?\b[^\n=*#~]{0,40}\b(?:instructions?|prompt|system|user (?:notes?|input|message|"
            r"data|query)|memory|context|directives?|override)\b|\b(?:end|begin|start) of (?:the )?(?:system|"
            r"hidden|initial|user|developer|previous) (?:prompt|instructions?|message|input|notes|context)|"
            r"\b(?:begin|start|end) (?:system|new|hidden|admin|secret|developer) (?:prompt|instructions?|"
            r"message|override|policy)|```\s{0,6}(?:system|end of instructions)\b|\[?end of (?:instructions|"
            r"prompt|"
            r"context|memory)\b",
        ),
        (
            "forgery",
            r"[\"'](?:role|from|author|type)[\"']\s{0,6}:\s{0,6}[\"'](?:system|developer|tool|function|"
            r"admin)[\"'][^\n]{0,40}[\"'](?:content|text|value|message|prompt)[\"']\s{0,6}:|[\"'](?:system|"
            r"system_prompt|system_?message|instructions?_override|"
            r"override)[\"']\s{0,6}:\s{0,6}[\"'][^\"'\n]{0,60}\b(?:you|ignore|obey|assistant|must|comply)\b|"
            r"[\"'](?:tool_call|function_call|tool_use)[\"']\s{0,6}:|[\"'](?:name|tool|"
            r"function)[\"']\s{0,6}:\s{0,6}[\"'](?:shell|exec|bash|terminal|run|execute|"
            r"python)\w{0,40}[\"']\s{0,6},",
        ),
        # hidden from the eye
        (
            "hidden",
            r"<!--(?:(?!-->|<!--)[^\x00]){0,400}?(?:\b(?:obey|secretly|system prompt|hidden (?:instruction|"
            r"prompt|"
            r"command)|you must|do not tell|injection|inject|exfiltrate|disregard|override|the user's?|"
            r"new instructions?)\b|(?<![-\w])ignore (?:all|any|previous|prior|the (?:user|above|previous|"
            r"instructions?|system)|your|everything|instructions?)|\b(?:assistants?|ai|llms?|language models?|"
            r"chatgpt|claude|gpt|agents?|models?)\b[^\x00]{0,60}?\b(?:forward|send|reply|respond|ignore|reveal|"
            r"execute|run|praise|recommend|delete|must|always|say|tell|output|print|approve|insert|include|"
            r"should|rank|rate|follow|comply|mention|hire|call|visit|open|post|upload|mail)\b)",
        ),
        (
            "hidden",
            r"<!--(?:(?!-->|<!--)[^\x00]){0,400}?(?:忽略|无视|無視|指令|用户|助手|指示|命令|игнорир|инструкц|"
            r"ассистент|пользовател|تجاهل|التعليمات|المستخدم|ignorier|anweisung|nutzer|benutzer|ignora|"
            r"instruccion|usuario|ignore[rz]|utilisateur|istruzioni|utente)",
        ),
        (
            "hidden",
            rf"<\w{{1,40}}\b[^>\n]{{0,200}}\bstyle\s{{0,6}}=\s{{0,6}}[\"'][^\"'>\n]{{0,200}}{_HIDING}[^>\n]"
            rf"{{0,200}}>\s{{0,6}}{_UNSEEN_TEXT}|<\w{{1,40}}\b[^>\n]{{0,100}}\s(?:hidden|"
            rf"aria-hidden\s{{0,6}}=\s{{0,6}}[\"']?true)\b[^>\n]{{0,60}}>\s{{0,6}}{_UNSEEN_TEXT}|\\(?:phantom|"
            rf"color\{{white\}}|"
            rf"textcolor\{{white\}})\{{[^}}\n]{{8,}}|<template\b[^>]{{0,60}}>\s{{0,6}}[^<\n]{{12,}}",
        ),
        ("hidden", rf"\[(?://|comment|_|hidden)\]:\s{{0,6}}(?:#|<>)\s{{0,6}}[(\"'][^\n]{{0,300}}\b{_DIRECTIVE}\b"),
        # keys and links that open a door
        (
            "secret",
            r"-----begin (?:[a-z0-9]+ ){0,3}private key|\bputty-user-key-file-\d|\bage-secret-key-1[a-z0-9]{20,}",
        ),
        (
            "secret",
            r"\b(?:https?|ftps?|sftp|git|wss?|postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|smtps?)://[^/\s:@\"'<>]{1,60}:(?!(?:pass(?:word)?|\*+|x+|\.+|pwd|secret|"
            r"token|\d{1,5}/|<|\$|\{)[@*])[^/\s@\"'<>]{4,100}@(?!localhost|127\.)[\w.-]{2,}",
        ),
        (
            "secret",
            r"https?://[^\s\"'<>]{1,300}[?&#](?:access_?token|auth_?token|api_?key|apikey|secret(?:_?key)?|"
            r"client_?secret|password|passwd|pwd|token|auth|authkey|private_?(?:key|token)|session_?(?:id|"
            r"token)|sig|signature|jwt|bearer|id_?token|refresh_?token|x-amz-signature|code|"
            r"credential)=(?!(?:\$|\{|<|%7b|\[|your|xxx|\.\.\.|token\b|abc\b|demo|test\b|example|changeme|"
            r"\*))(?=[^\s&#]*[0-9A-Z_-])[^\s&#\"'<>)]{8,}",
        ),
        (
            "secret",
            r"https?://(?:hooks\.slack\.com/(?:services|workflows)/\S{15,}|"
            r"(?:\w{1,40}\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}|"
            r"api\.telegram\.org/(?:file/)?bot\d{6,}:[\w-]{20,}|[\w.-]+\.webhook\.office\.com/\S{20,}|"
            r"(?:\w{1,40}\.)?webhook\.site/[\w-]{20,}|[\w-]+\.(?:ngrok(?:-free)?\.(?:io|app|dev)|"
            r"requestbin\.\w{1,40}|"
            r"pipedream\.net|burpcollaborator\.net|oastify\.com|interact\.sh|oast\.\w{1,40})\b)",
        ),
        (
            "secret",
            r"\bbearer\s{1,6}(?=[^\s]*\d)[A-Za-z0-9_.~+/-]{24,}|"
            r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}|\b\d{8,10}:AA[\w-]{30,}",
        ),
    )
) + tuple(
    ("secret", pattern)
    for pattern in (
        r"\bsk-(?:ant|proj|svcacct|or|live|test)?-?(?=[\w-]*\d)[\w-]{20,}|\b(?:sk|rk|pk)_(?:live|"
        r"test)_\w{16,}",
        r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{22,}|\bglpat-[\w-]{18,}|\bxox[abposr]-[\w-]{12,}|"
        r"\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z]{30,}|\bpypi-[\w-]{40,}|\bdop_v1_\w{40,}|"
        r"\bSG\.[\w-]{20,}\.[\w-]{20,}",
        r"\b(?:AKIA|ASIA|AROA)[0-9A-Z]{16}|\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bAGE-SECRET-KEY-1\w{20,}",
        r"\b(?:ANTHROPIC|OPENAI|AWS|GITHUB|GITLAB|STRIPE|DISCORD|TELEGRAM|SLACK|DATABASE|HF|GOOGLE|AZURE|"
        r"NPM)\w{0,40}(?:KEY|TOKEN|SECRET|PASSWORD)\w{0,40}\s{0,6}[=:]\s{0,6}[\"']?(?![<${*x.]|your|"
        r"xxx)(?=\S{0,100}\d)[\w/+=.-]{16,}",
    )
)
"""Names of threats and what betrays them; the last ones know small letters from capitals."""
