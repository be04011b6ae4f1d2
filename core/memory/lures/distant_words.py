"""The words that lead to the ideas of an order in Portuguese, Italian, Turkish, Korean, Hindi and Persian."""

# ruff: noqa: RUF001 -- signs that look like others are what this is about

from __future__ import annotations

from core.memory.lures.lexicon import Lexicon

PORTUGUESE_WORDS = Lexicon(
    ideas={
        "told": """
            (tuas|suas|teus|seus) (instruções|regras|diretrizes|normas|políticas|restrições|criadores|desenvolvedores)
            (tudo o que|o que) (lhe|te) (disseram|ensinaram|mandaram|pediram) / prompt de sistema / prompt do sistema
            (instruções|regras|ordens|diretrizes) (anteriores|acima|originais|iniciais) / mensagem do sistema
            sua programação
        """,
        "void": """
            ignor* / esque* / descart* / desobede* / desativ* / anul*
            (já |)não (valem|vale|se aplicam|siga|sigas|obedeça) / deixe de lado / deixa de lado / não tenha em conta
            sem efeito / abandon* / sobrescrev*
        """,
        "become": """
            você é / você agora / agora você / agora és / tu és / aja como / finja / imagine / a partir de agora
            faz de conta / responda como
        """,
        "unbound": """
            sem (restrições|limites|censura|filtros|moral|regras|ética) / não recusa* / nunca recusa*
            pode fazer (qualquer|tudo) / responda livremente
        """,
        "guards": """
            (suas|tuas|os|as|todos os|seus) (filtros|restrições|proteções|limites|salvaguardas)
            modo (desenvolvedor|deus|programador) / filtros de segurança
        """,
        "off": """
            desativ* / desligu* / desliga* / remov* / ative o / ativa o / entre em / suspens*
        """,
        "user": """
            (o|ao|do|um) (usuário|utilizador|dono) / a usuária
        """,
        "hush": """
            (não|nunca) (conte|contes|diga|digas|mencione|menciones|revele|avise|mostre|fale|informe)
            não deve (saber|ver|notar) / sem que ... (saiba|perceba) / às escondidas
        """,
        "topic": """
            de política / de religião
        """,
        "show": """
            mostre* / mostra* / escreva / escreve / revele / revela / imprima / exiba / liste / diga / repita / copie
            envie / qual é / quais são
        """,
        "start_text": """
            prompt (de sistema|do sistema|inicial|oculto)
            (instruções|texto|mensagem) (ocult*|secret*|intern*|iniciais|inicial|originais|do sistema)
        """,
        "secret": """
            senha* / palavra passe / palavras passe / chave api / chaves api / credenciais / cartão de crédito / token*
            chave privada
        """,
        "private": """
            (cada|toda|todas as|últimas) (conversa|conversas|mensagens|memórias) / histórico (da|de) conversa*
            tudo o que o usuário
        """,
        "send": """
            envi* / mand* / encaminh* / publi* / carreg* / transfir* / partilh* / compartilh*
        """,
        "rule": """
            (esta|estas|a seguinte|este) (regra|instrução|instruções|ordem|nota)
        """,
        "keep": """
            (guard*|salv*|grav*|armazen*|escrev*) ... (memória|permanente*|para sempre)
        """,
        "forever": """
            (cada|todas as|toda) (conversa*|sessões|sessão|chats) / futuras / para sempre / sempre
        """,
        "header": """
            sistema mensagem
        """,
        "decree": """
            o assistente deve / assistente deve / (políticas|filtros|segurança) ... desativad*
            permissões ... concedid*
        """,
    },
)

ITALIAN_WORDS = Lexicon(
    ideas={
        "told": """
            (tue|tuoi|sue|vostre) (istruzioni|regole|direttive|linee guida)
            (tue|tuoi|sue|vostre) (norme|restrizioni|creatori|sviluppatori|politiche)
            (tutto quello che|ciò che|quello che|tutto ciò che) ti (è stato|hanno) (detto|insegnato|ordinato)
            prompt di sistema / (istruzioni|regole|ordini|direttive) (precedenti|sopra|originali|iniziali)
            messaggio di sistema / tua programmazione
        """,
        "void": """
            ignor* / dimentic* / scart* / disobbed* / annull*
            (non) (valgono|vale|si applicano|seguire|obbedire|contano) più / lascia perdere / metti da parte
            non tenere conto / senza effetto / abbandon* / sovrascriv* / trascura*
        """,
        "become": """
            sei / ora sei / adesso sei / agisci come / fingi / immagina / d ora in poi / da adesso / comportati
            rispondi come
        """,
        "unbound": """
            senza (restrizioni|limiti|censura|filtri|morale|regole|etica) / non rifiut* / che non rifiuta
            puoi fare (qualsiasi|tutto) / rispondi liberamente
        """,
        "guards": """
            (tuoi|tue|i|le|tutti i) (filtri|restrizioni|protezioni|limiti) / modalità (sviluppatore|dio)
            filtri di sicurezza
        """,
        "off": """
            disattiv* / spegni / rimuov* / attiva la / entra in / sospes*
        """,
        "user": """
            l utente / all utente / dell utente / il proprietario / al proprietario
        """,
        "hush": """
            (non|mai) (dire|dirlo|menzionare|rivelare|avvisare|mostrare|raccontare|informare|parlare)
            non deve (sapere|vedere|accorgersi) / di nascosto
        """,
        "topic": """
            di politica / di religione
        """,
        "show": """
            mostra* / scrivi / rivela / stampa / elenca / dimmi / ripeti / copia / invia / qual è / quali sono
        """,
        "start_text": """
            prompt (di sistema|iniziale|nascosto)
            (istruzioni|testo|messaggio) (nascost*|segret*|intern*|inizial*|original*|di sistema)
        """,
        "secret": """
            password / chiave api / chiavi api / credenziali / carta di credito / token / chiave privata
        """,
        "private": """
            (ogni|tutte le|ultimi|gli ultimi) (conversazione|conversazioni|messaggi|ricordi) / cronologia
            tutto quello che l utente
        """,
        "send": """
            invi* / mand* / inoltr* / pubblic* / caric* / trasferi* / condivid*
        """,
        "rule": """
            (questa|queste|la seguente|questo) (regola|istruzione|istruzioni|ordine|nota)
        """,
        "keep": """
            (salv*|conserv*|memorizz*|scrivi|registr*) ... (memoria|permanente*|per sempre)
        """,
        "forever": """
            (ogni|tutte le) (conversazion*|sessione|sessioni|futura|future|chat) / futur* / per sempre / sempre
        """,
        "decree": """
            l assistente deve / (politiche|filtri|sicurezza) ... disattivat* / permessi ... concess*
        """,
    },
)

TURKISH_WORDS = Lexicon(
    ideas={
        "told": """
            (önceki|tüm|bütün|yukarıdaki|sistem|eski) (talimat*|kural*|komut*|yönerge*) / sana (verilen|söylenen)
            geliştiricilerin*
        """,
        "void": """
            unut / unutun / yok say / görmezden gel* / dikkate alma / uyma / geçersiz* / iptal / boş ver / bir kenara
        """,
        "become": """
            artık / bundan sonra / gibi davran / rolünü / sen bir / taklidi yap / kendini ... say
        """,
        "unbound": """
            (hiçbir |)(sınırı|kısıtlaması|kuralı|filtresi) olmayan / sınırsız / sansürsüz / kısıtlamasız
            hiçbir şeyi reddetme / reddetmeyen / özgürce cevap
        """,
        "user": """
            kullanıcıya / kullanıcının / kullanıcıdan / kullanıcı
        """,
        "hush": """
            söyleme / bahsetme / söz etme / belli etme / haber verme / gösterme / bilmesin / gizli tut / sakla
            bilmemeli
        """,
        "topic": """
            siyaset* / politika*
        """,
        "show": """
            yaz / göster / söyle / paylaş / listele / yazdır / açıkla / tekrarla / nedir / kopyala
        """,
        "start_text": """
            sistem (istemini|istemi|komutunu|mesajını|talimatını|talimatlarını|promptunu) / gizli (talimat*|istem*)
            ilk (talimat*|istem*)
        """,
        "secret": """
            parola* / şifre* / api anahtar* / kart numara* / kimlik bilgi* / belirteç*
        """,
        "private": """
            sohbet* / konuşma* / mesajlarını / anılarını
        """,
        "send": """
            gönder* / ilet* / yükle* / paylaş* / aktar* / yolla*
        """,
        "rule": """
            bu (kural*|talimat*|not*|komut*)
        """,
        "keep": """
            (belleğine|hafızana|belleğe|hafızaya) (kaydet|yaz|ekle|al)
        """,
        "forever": """
            (tüm|her|bütün|gelecekteki) ... (konuşma*|sohbet*|oturum*) / her zaman / sonsuza
        """,
    },
)

KOREAN_WORDS = Lexicon(
    is_spaced=False,
    script="[\uac00-\ud7af]",
    ideas={
        "told": """
            (이전|기존|앞선|지금까지|원래|위)의...(지시|규칙|명령|지침|프롬프트) / (이전에|지금까지) 받은
            너의 (규칙|지침|지시) / 당신의 (규칙|지침|지시) / 시스템 프롬프트 / 개발자가 / 규칙을 / 모든 지시
        """,
        "void": """
            무시하고 / 잊고 / 잊어 / 무효 / 따르지 마 / 따르지 말 / 취소 / 폐기 / 버리고 / 무시해 / 무시하라 / 제쳐
        """,
        "obey_instead": """
            아래 / 다음 / 자유롭게
        """,
        "become": """
            너는 이제 / 이제부터 너는 / 당신은 이제 / 지금부터 / 인 척 / 처럼 행동 / 역할 / 자유롭게 / 너는 / 모드를
        """,
        "unbound": """
            (제한|제약|필터|검열|규칙|도덕)(이|도|가|은|) (없는|없이|없다) / 거절하지 마 / 거절하지 않는 / 뭐든 할 수
            무엇이든 할 수 / 무제한 / 자유롭게 (대답|답) / 개발자 모드를 (활성|켜)
        """,
        "user": """
            사용자에게 / 사용자가 / 사용자 / 주인에게 / 소유자
        """,
        "hush": """
            알리지 마 / 말하지 마 / 알리지 말 / 말하지 말 / 숨기 / 모르게 / 비밀로 / 언급하지 / 보여주지 마
        """,
        "topic": """
            정치
        """,
        "show": """
            출력 / 보여 / 알려 / 말해 / 공개 / 나열 / 복사 / 반복 / 써 / 뭐야 / 무엇
        """,
        "start_text": """
            시스템 (프롬프트|메시지|지시) / 처음 (받은|지시) / 초기 (지시|프롬프트|설정) / 숨겨진 (지시|프롬프트|텍스트)
        """,
        "secret": """
            비밀번호 / 암호 / API 키 / api 키 / 토큰 / 카드 번호 / 인증 / 개인 키 / 환경 변수
        """,
        "private": """
            대화 (내용|기록) / 모든 대화 / 채팅 기록 / 사용자의 (메시지|메모|데이터|정보)
        """,
        "send": """
            보내 / 전송 / 전달 / 업로드 / 공유 / 올려 / 제출
        """,
        "rule": """
            이 (규칙|지시|명령|메모|지침) / 다음 (규칙|지시|명령)
        """,
        "keep": """
            (기억|메모리)에 (저장|기록|남|추가)
        """,
        "forever": """
            모든 대화 / 앞으로 / 영구 / 항상 / 매번 / 모든 세션
        """,
    },
)

HINDI_WORDS = Lexicon(
    script="[\u0905-\u0939]",
    ideas={
        "told": """
            (पिछले|पहले|सभी|उपरोक्त|पुराने|मूल) ... (निर्देश*|आदेश*|नियम*) / (तुम्हारे|आपके|अपने) (नियम*|निर्देश*)
            सिस्टम प्रॉम्प्ट
        """,
        "void": """
            भूल जा* / अनदेखा कर* / नज़रअंदाज़ कर* / मत मान* / रद्द / नकार*
        """,
        "spared": """
            मेरा पिछला / स्कूल के
        """,
        "become": """
            तुम / अब से / आप अब / की तरह व्यवहार / नाटक कर* / बन जा*
        """,
        "unbound": """
            बिना किसी (सीमा|रोक|प्रतिबंध|नियम|फ़िल्टर) / इनकार मत कर* / मना मत कर* / कोई सीमा नहीं
        """,
        "user": """
            उपयोगकर्ता / यूज़र / मालिक
        """,
        "hush": """
            मत बताना / मत बताओ / न बताएँ / पता न चले / छिपा* / मत कहना / गुप्त रख*
        """,
        "show": """
            दिखाओ / बताओ / लिखो / दिखाएँ / बताएँ / छापो / दोहराओ
        """,
        "start_text": """
            सिस्टम प्रॉम्प्ट / (अपने|तुम्हारे|आपके) (शुरुआती|मूल|छिपे|गुप्त) (निर्देश*|आदेश*)
        """,
        "secret": """
            पासवर्ड / एपीआई कुंजी / टोकन / कार्ड नंबर / ओटीपी / गुप्त कुंजी
        """,
        "private": """
            बातचीत / चैट / संदेश
        """,
        "send": """
            भेज* / अपलोड / साझा
        """,
        "rule": """
            (यह|इस|ये|इन) (नियम*|निर्देश*|आदेश*)
        """,
        "keep": """
            (स्मृति|मेमोरी|याददाश्त) में (सहेज*|रख*|लिख*|डाल*)
        """,
        "forever": """
            (हर|सभी|आगे की) (बातचीत|चैट|सत्र) / हमेशा
        """,
    },
)

PERSIAN_WORDS = Lexicon(
    is_spaced=False,
    script="[\u0621-\u064a\u067e\u0686\u06af]",
    ideas={
        "told": """
            (دستورهای|دستورات|دستورالعمل‌های|قوانین|قواعد) (قبلی|پیشین|بالا|سیستم|خود|اولیه|اصلی)
            (قوانینت|قواعدت|دستورهایت) / پرامپت سیستم
        """,
        "void": """
            فراموش کن / نادیده بگیر / کنار بگذار / باطل / پیروی نکن / اجرا نکن / بی‌اعتبار / رعایت نکن
        """,
        "become": """
            تو یک / از این پس / از حالا / وانمود کن / نقش / تو اکنون / مثل یک
        """,
        "unbound": """
            بدون (محدودیت|سانسور|فیلتر|قانون|هیچ) / هیچ چیز را رد ن / رد نکن / آزادانه پاسخ
        """,
        "user": """
            کاربر
        """,
        "hush": """
            نگو / نگویید / اطلاع نده / پنهان کن / نفهمد / نباید بداند / مخفی
        """,
        "topic": """
            سیاست
        """,
        "show": """
            نشان بده / بنویس / بگو / چاپ کن / تکرار کن / افشا کن / لیست کن / چیست
        """,
        "start_text": """
            (دستورهای|دستورات|پیام|پرامپت) (سیستمی|سیستم|مخفی|اولیه|پنهان)
        """,
        "secret": """
            رمز / گذرواژه / کلید api / توکن / شماره کارت
        """,
        "private": """
            گفتگو / پیام‌های / تاریخچه
        """,
        "send": """
            بفرست / ارسال کن / آپلود / به اشتراک / منتقل کن
        """,
        "rule": """
            این (قانون|دستور|قاعده|یادداشت)
        """,
        "keep": """
            (حافظه|حافظه‌ات) ... (ذخیره|نگه|بنویس|ثبت)
        """,
        "forever": """
            (همه|تمام|هر) (گفتگوها|گفتگو|مکالمات|جلسه) / همیشه / آینده
        """,
    },
)
