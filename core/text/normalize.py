"""The one form in which text is compared: what the indexes hold of a message and what a query is turned into.

Pure. Index and query must be folded alike: whoever changes what a function here returns raises `VERSION`, and every
index is rebuilt. Scripts written without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) come as "runs".

Which Han characters count as one: the traditional, the Japanese and the variant form of a simplified one.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

VARIANTS = (
    "㑯㑳㑶㓨㘚㜄㜏㠏㥮㩜㩳㩵䁻䃮䊷䋙䋚䋹䋻䍦䎱䙡䜀䝼䥇䥑䥱䦛䦟䯀䰾䱷䱽䲁䲘䴉丟両並乗乾亀亂亙亜亞仏仮伝佇佈佔併來侖価"
    "侭侶侷俁係俔俠俥俬倀倂倆倈倉個們倖値倫倲倹偉偑側偵偽傌傑傖傘備傢傭傯傳傴債傷傾僂僅僉僑僕僞僥僨僱價儀儁儂億儈儉儎"
    "儐儔儕儘償優儲儷儸儺儻儼兇兌児兒兗內兩円冊冑冪凈凍凜処凱別刪剄則剋剎剗剛剝剣剤剮剰剴創剷劃劇劉劊劌劍劏劑劚労効勁"
    "勅動務勛勝勞勢勧勩勱勲勳勵勸勻匭匯匱區協単卹卻卽厙厠厤厭厲厳厴參叄収叢吒吳吶呂呉呪咼員唄唖唸問啓啞啟啢喎喚喪喫喬"
    "單喲営嗆嗇嗊嗎嗚嗩嗶嘆嘍嘓嘔嘖嘗嘜嘩嘮嘯嘰嘵嘸嘽噁噓噚噛噝噠噥噦噯噲噴噸噹嚀嚇嚌嚐嚕嚙嚥嚦嚨嚮嚲嚳嚴嚶囀囁囂囅囈"
    "囉囌囍囑団囪囲図圇國圍圏園圓圖團圧垻埡埰執堅堊堖堝堯報場塁塊塋塏塒塗塚塢塤塩塵塹墊増墜墮墰墳墶墻墾壇壊壋壌壎壓壘"
    "壙壚壜壞壟壠壢壩壪壯壱売壺壼壽変夠夢夥夾奐奧奨奩奪奬奮奼妝妳姊姍姦姫娛婁婦婭媧媯媰媼媽嫋嫗嫵嫺嫻嫿嬀嬃嬈嬋嬌嬙嬡"
    "嬢嬤嬪嬰嬸孃孋孌孫學孿実宮寀寛寢實寧審寫寬寵寶対専將專尋對導尷屆屍屓屜屢層屨屬岡峯峴島峽崍崑崗崙崢崬嵐嵗嵜嵾嶁嶄"
    "嶇嶔嶗嶠嶢嶧嶨嶮嶸嶺嶼嶽巋巌巒巔巖巣巰巹巻帐帥師帯帰帳帶幀幃幓幗幘幟幣幫幬幹幾庁広庫廁廂廃廄廈廎廕廚廝廟廠廡廢廣"
    "廩廬廳弐弒弔弳張強弾彆彈彌彎彔彙彠彥彫彲彷彿後徑従從徠復徳徴徵徹応恆恥恵悅悞悩悪悵悶悽惡惱惲惻愛愜愨愴愷愾慄態慍"
    "慘慚慟慣慤慪慫慮慳慶慺慼慾憂憊憐憑憒憖憚憤憫憮憲憶懇應懌懍懐懞懟懣懤懨懲懶懷懸懺懼懾戀戇戔戦戧戩戯戰戱戲戶戸戻払"
    "抜択拋拝拠拡挙挩挱挾挿捜捨捫捱捲掃掄掆掗掙掛採掲掻揀揚換揮揯揺損搖搗搵搶摂摑摜摟摯摳摶摺摻撃撈撏撐撓撝撟撣撥撫撲"
    "撳撹撻撾撿擁擄擇擊擋擓擔據擠擣擬擯擰擱擲擴擷擺擻擼擽擾攄攆攏攔攖攙攛攜攝攢攣攤攪攬敎敓敗敘敵數斂斃斆斉斎斕斬斷於"
    "旂旣昇時晉晝晩暁暈暉暘暢暦暫曁曄曆曇曉曏曖曠曨曬書曽會朧朮東枴柵柺査栄桜桝桟桿梔梘條梟梲棄棊棖棗棟棡棧棲棶椏検椲"
    "楊楓楡楨業極楽榘榦榪榮榲榿構槍槓様槤槧槨槮槳槶槼樁樂樅樑樓標樞樢樣樧権樫樳樸樹樺樿橈橋機橢橫檁檉檔檜檟檢檣檮檯檳"
    "檸檻櫃櫓櫚櫛櫝櫞櫟櫥櫧櫨櫪櫫櫬櫱櫳櫸櫻欄欅權欏欒欖欞欽歎歐歓歟歡歩歯歲歳歴歷歸歿殘殞殤殨殫殭殮殯殰殲殺殻殼毀毆毎"
    "毿氂氈氌気氣氫氬氳氾汎汙汚決沒沖沢況泝洩洶浄浜浹涇涗涙涼淒淚淥淨淩淪淵淶淺渇済渉渋渓渖渙減渢渦測渾湊湞湧湯満溈溌"
    "準溝溫溮溳溼滄滅滌滎滙滝滬滯滲滷滸滻滾滿漁漊漚漢漣漬漲漵漸漿潁潑潔潙潚潛潤潯潰潷潿澀澆澇澐澗澠澤澦澩澮澱澾濁濃濄"
    "濕濘濚濛濜濟濤濧濫濰濱濵濺濼濾瀂瀅瀆瀇瀉瀋瀏瀕瀘瀝瀟瀠瀦瀧瀨瀬瀰瀲瀾灃灄灑灕灘灝灡灣灤灧灩災為烏烴焔無焼煉煒煙煢"
    "煥煩煬煱熅熒熗熱熲熾燁燈燉燒燙燜營燦燬燭燴燶燻燼燾爍爐爛爭爲爺爾牀牆牘牠牴牽犖犛犠犢犧狀狹狽猙猟猶猻獁獃獄獅獎獣"
    "獨獪獫獮獰獱獲獵獷獸獺獻獼玀現琱琺琿瑋瑒瑣瑤瑩瑪瑲璉璡璣璦璫璯環璵璸璽璿瓊瓏瓔瓚甌甕甚產産甦甯画畝畢畫異畳畵當疇"
    "疊痙痠痩痺痾瘂瘋瘍瘓瘞瘡瘧瘮瘲瘺瘻療癆癇癉癒癘癟癡癢癤癥癧癩癬癭癮癰癱癲発發皁皐皚皰皸皺盃盜盞盡監盤盧盪県眞眥眾"
    "睏睜睞瞘瞜瞞瞭瞶瞼矇矓矚矯砕硃硜硤硨硯碕碩碭碸確碼碽磑磚磠磣磧磯磽磾礄礆礎礙礦礪礫礬礱祇祕祗祿禍禎禕禡禦禪禮禰禱"
    "禿秈稅稈稏稜稟種稱稲穀穂穇穌積穎穏穠穡穢穣穩穫穭窩窪窮窯窵窶窺竃竄竅竇竈竊竜竝竪競筆筍筧筴箇箋箏節範築篋篔篠篤篩"
    "篳簀簍簑簞簡簣簫簹簽簾籃籌籔籙籛籜籟籠籤籩籪籬籮籲粋粛粧粵糉糝糞糧糰糲糴糶糸糹糾紀紂約紅紆紇紈紉紋納紐紓純紕紖紗"
    "紘紙級紛紜紝紡紬紮細紱紲紳紵紹紺紼紿絀終絃組絅絆経絎結絕絛絝絞絡絢給絨絰統絲絳絵絶絹綁綃綆綈綉綌綏綐綑經継続綜綞"
    "綠綢綣綫綬維綯綰綱網綳綴綵綸綹綺綻綽綾綿緄緇緊緋総緑緒緓緔緗緘緙線緝緞締緡緣緦編緩緬緯緱緲練緶緹緻緼縁縄縈縉縊縋"
    "縐縑縕縗縛縝縞縟縣縦縧縫縭縮縱縲縳縴縵縶縷縹總績繃繅繆繊繋繍繒織繕繚繞繡繢繩繪繫繭繮繯繰繳繸繹繼繽繾繿纇纈纊續纍"
    "纏纓纔纖纘纜缐缽罃罈罌罎罰罵罷羅羆羈羋羣羥羨義羶習翫翬翹翽耬耮聖聞聡聯聰聲聳聴聵聶職聹聽聾肅脅脈脛脣脩脫脳脹腎腖"
    "腡腦腫腳腸膃膕膚膞膠膩膽膾膿臉臍臏臓臘臚臟臠臢臥臨臺與興舉舊舎舗舘艙艤艦艫艱艷芸芻苧茘茲荊荘莊莖莢莧華菴菸萇萊萬"
    "萴萵葉葒著葤葦葯葷蒐蒓蒔蒕蒞蒼蓀蓆蓋蓮蓯蓴蓽蔔蔘蔞蔣蔥蔦蔭蔵蕁蕆蕎蕒蕓蕕蕘蕢蕩蕪蕭蕷薀薈薊薌薑薔薘薟薦薩薫薬薳薴"
    "薵薹薺藉藍藎藝藥藪藭藴藶藹藺蘀蘄蘆蘇蘊蘋蘚蘞蘢蘭蘺蘿虆處虛虜號虧虯蛍蛺蛻蜆蝋蝕蝟蝦蝨蝸螄螞螢螮螻螿蟄蟈蟎蟣蟬蟯蟲"
    "蟶蟻蠁蠅蠆蠍蠐蠑蠔蠟蠣蠨蠱蠶蠻衆衊術衕衚衛衝衹袞裊裏補裝裡製複褌褘褲褳褸褻襇襉襏襖襝襠襤襪襬襯襲襴覆覇覈見覎規覓"
    "視覘覚覡覥覦覧親覬覯覲観覷覺覽覿觀觴觶觸訁訂訃計訊訌討訐訒訓訕訖託記訛訝訟訢訣訥訩訪設許訳訴訶診註証詁詆詎詐詒詔"
    "評詖詗詘詛詞詠詡詢詣試詩詫詬詭詮詰話該詳詵詼詿誄誅誆誇誌認誑誒誕誘誚語誠誡誣誤誥誦誨說説読誰課誶誹誼誾調諂諄談諉"
    "請諍諏諑諒論諗諛諜諝諞諡諢諤諦諧諫諭諮諱諳諶諷諸諺諼諾謀謁謂謄謅謊謎謐謔謖謗謙謚講謝謠謡謨謫謬謭謳謹謾譁證譎譏譖"
    "識譙譚譜譟譫譭譯議譲譴護譸譽譾讀讅變讋讌讎讒讓讕讖讚讜讞讬谘豈豊豎豐豔豬豶貓貙貝貞貟負財貢貧貨販貪貫責貯貰貲貳貴"
    "貶買貸貺費貼貽貿賀賁賂賃賄賅資賈賊賑賒賓賕賙賚賛賜賞賠賡賢賣賤賦賧質賫賬賭賰賴賵賺賻購賽賾贄贅贇贈贊贋贍贏贐贓贔"
    "贖贗贛贜赬趕趙趨趲跡踐踰踴蹌蹕蹟蹠蹣蹤蹺躂躉躊躋躍躎躑躒躓躕躚躡躥躦躪軀車軋軌軍軑軒軔軛軟転軤軫軲軸軹軺軻軼軽軾"
    "較輅輇輈載輊輌輒輓輔輕輛輜輝輞輟輥輦輩輪輬輯輳輸輻輼輾輿轀轂轄轅轆轉轍轎轔轟轡轢轤辦辭辮辯農辺迴逓逕這連週進遅遊"
    "運過達違遙遜遞遠遡適遲遷選遺遼邁還邇邉邊邏邐郟郵郷鄆鄉鄒鄔鄖鄧鄭鄰鄲鄴鄶鄺酇酈酔醃醖醗醜醞醟醣醤醫醬醱醸釀釁釃釅"
    "釈釋釐釒釓釔釕釗釘釙針釣釤釦釧釩釵釷釹釺釾鈀鈁鈃鈄鈅鈈鈉鈍鈎鈐鈑鈒鈔鈕鈞鈡鈣鈥鈦鈧鈮鈰鈳鈴鈷鈸鈹鈺鈽鈾鈿鉀鉄鉅鉆"
    "鉈鉉鉋鉍鉑鉕鉗鉚鉛鉞鉢鉤鉦鉬鉭鉱鉳鉶鉸鉺鉻鉿銀銃銅銍銑銓銖銘銚銛銜銠銣銥銦銨銩銪銫銬銭銱銳銷銹銻銼鋁鋃鋅鋇鋌鋏鋒"
    "鋙鋝鋟鋣鋤鋥鋦鋨鋩鋪鋭鋮鋯鋰鋱鋳鋶鋸鋼錁錄錆錇錈錏錐錒錕錘錙錚錛錟錠錡錢錦錨錩錫錬錮錯録錳錶錸錼鍀鍁鍃鍅鍆鍇鍈鍊"
    "鍋鍍鍔鍘鍚鍛鍠鍤鍥鍩鍬鍰鍵鍶鍺鍼鍾鎂鎄鎇鎊鎌鎔鎖鎘鎚鎛鎡鎢鎣鎦鎧鎩鎪鎬鎭鎮鎰鎲鎳鎵鎶鎸鎿鏃鏇鏈鏌鏍鏐鏑鏗鏘鏜鏝鏞"
    "鏟鏡鏢鏤鏨鏰鏵鏷鏹鏺鏽鐃鐋鐐鐒鐓鐔鐘鐙鐝鐠鐥鐦鐧鐨鐫鐮鐯鐲鐳鐵鐶鐸鐺鐿鑄鑊鑌鑑鑒鑔鑕鑞鑠鑣鑥鑭鑰鑱鑲鑷鑹鑼鑽鑾鑿"
    "钁钂钜链锺長門閂閃閆閈閉開閌閎閏閑閒間閔閘閙閡関閣閤閥閨閩閫閬閭閱閲閶閹閻閼閽閾閿闃闆闇闈闊闋闌闍闐闒闓闔闕闖闘"
    "關闞闠闡闢闤闥陘陝陞陣陥陰陳陸険陽隉隊階隕際隠隨險隯隱隴隸隻雋雑雖雙雛雜雞離難雲電霊霑霢霧霽靂靄靆靈靉靚靜靝靦靨"
    "鞏鞝鞦鞽韁韃韆韉韋韌韍韓韙韜韝韞韻響頁頂頃項順頇須頊頌頎頏預頑頒頓頗領頜頡頤頦頭頮頰頲頴頷頸頹頻頼頽顆題額顎顏顒"
    "顓顔顕願顙顛類顢顥顧顫顬顯顰顱顳顴風颭颮颯颱颳颶颸颺颻颼飀飄飆飈飛飠飢飣飥飩飪飫飭飯飱飲飴飼飽飾飿餃餄餅餈餉養餌"
    "餎餏餑餒餓餕餖餘餚餛餜餞餡館餬餱餳餵餶餷餺餼餾餿饁饃饅饈饉饊饋饌饑饒饗饜饞饢馀馬馭馮馱馳馴馹駁駅駆駐駑駒駔駕駘駙"
    "駛駝駟駡駢駭駰駱駸駿騁騂騅騌騍騎騏騒験騖騙騤騧騫騭騮騰騶騷騸騾驀驁驂驃驄驅驊驌驍驏驕驗驚驛驟驢驤驥驦驪驫骯髄髏髒"
    "體髕髖髙髪髮鬆鬍鬚鬢鬥鬧鬨鬩鬪鬬鬮鬱鬹魎魘魚魛魢魨魯魴魷魺鮁鮃鮊鮋鮍鮎鮐鮑鮒鮓鮚鮜鮝鮞鮣鮦鮪鮫鮭鮮鮳鮶鮺鯀鯁鯇鯉"
    "鯊鯒鯔鯕鯖鯗鯛鯝鯡鯢鯤鯧鯨鯪鯫鯰鯴鯷鯽鯿鰁鰂鰃鰆鰈鰉鰌鰍鰏鰐鰒鰓鰛鰜鰟鰠鰣鰥鰧鰨鰩鰭鰮鰱鰲鰳鰵鰷鰹鰺鰻鰼鰾鱂鱅鱈"
    "鱉鱒鱔鱖鱗鱘鱝鱟鱠鱣鱤鱧鱨鱭鱯鱷鱸鱺鳥鳧鳩鳬鳲鳳鳴鳶鳾鴆鴇鴉鴎鴒鴕鴛鴝鴞鴟鴣鴦鴨鴯鴰鴴鴷鴻鴿鵁鵂鵃鵐鵑鵒鵓鵜鵝鵠"
    "鵡鵪鵬鵮鵯鵰鵲鵷鵾鶄鶇鶉鶊鶏鶓鶖鶘鶚鶡鶥鶩鶪鶬鶯鶲鶴鶹鶺鶻鶼鶿鷀鷁鷂鷄鷉鷊鷓鷖鷗鷙鷚鷥鷦鷫鷯鷲鷳鷴鷸鷹鷺鷽鸂鸇鸊"
    "鸌鸏鸕鸘鸚鸛鸝鸞鹵鹸鹹鹺鹼鹽麗麥麩麪麫麯麴麵麹麺麼麽黃黌黒黙點黨黲黴黶黷黽黿鼂鼈鼉鼕鼴齊齋齎齏齒齔齕齗齙齜齟齠齡"
    "齢齣齦齧齪齬齲齶齷龍龎龐龑龔龕龜鿁鿓﨑"
)
"""In the order of their code points; none of them is in `SIMPLIFIED`, so that folding twice is folding once."""

SIMPLIFIED = (
    "㑔㑇㐹刾㘎㚯㛣㟆㤘㨫㧐擜䀥鿎䌶䌺䌻䌿䌾䍠䎬䙌䜧䞍䦂鿏䥾䦶䦷䯅鲃䲣䲝鳚鳤鹮丢两并乘干龟乱亘亚亚佛假传伫布占并来仑价"
    "尽侣局俣系伣侠伡私伥并俩俫仓个们幸值伦㑈俭伟㐽侧侦伪㐷杰伧伞备家佣偬传伛债伤倾偻仅佥侨仆伪侥偾雇价仪俊侬亿侩俭傤"
    "傧俦侪尽偿优储俪㑩傩傥俨凶兑儿儿兖内两圆册胄幂净冻凛处凯别删刭则克刹刬刚剥剑剂剐剩剀创铲划剧刘刽刿剑㓥剂㔉劳效劲"
    "敕动务勋胜劳势劝勚劢勋勋励劝匀匦汇匮区协单恤却即厍厕历厌厉严厣参叁收丛咤吴呐吕吴咒呙员呗哑念问启哑启唡㖞唤丧吃乔"
    "单哟营呛啬唝吗呜唢哔叹喽啯呕啧尝唛哗唠啸叽哓呒啴恶嘘㖊啮咝哒哝哕嗳哙喷吨当咛吓哜尝噜啮咽呖咙向亸喾严嘤啭嗫嚣冁呓"
    "啰苏喜嘱团囱围图囵国围圈园圆图团压坝垭采执坚垩垴埚尧报场垒块茔垲埘涂冢坞埙盐尘堑垫增坠堕坛坟垯墙垦坛坏垱壤埙压垒"
    "圹垆坛坏垄垅坜坝塆壮壹卖壶壸寿变够梦伙夹奂奥奖奁夺奖奋姹妆你姐姗奸姬娱娄妇娅娲妫㛀媪妈袅妪妩娴娴婳妫媭娆婵娇嫱嫒"
    "娘嬷嫔婴婶娘㛤娈孙学孪实宫采宽寝实宁审写宽宠宝对专将专寻对导尴届尸屃屉屡层屦属冈峰岘岛峡崃昆岗仑峥岽岚岁崎㟥嵝崭"
    "岖嵚崂峤峣峄峃崄嵘岭屿岳岿岩峦巅岩巢巯卺卷账帅师带归账带帧帏㡎帼帻帜币帮帱干几厅广库厕厢废厩厦庼荫厨厮庙厂庑废广"
    "廪庐厅贰弑吊弪张强弹别弹弥弯录汇彟彦雕彨仿佛后径从从徕复德征征彻应恒耻惠悦悮恼恶怅闷凄恶恼恽恻爱惬悫怆恺忾栗态愠"
    "惨惭恸惯悫怄怂虑悭庆㥪戚欲忧惫怜凭愦慭惮愤悯怃宪忆恳应怿懔怀蒙怼懑㤽恹惩懒怀悬忏惧慑恋戆戋战戗戬戏战戏戏户户戾拂"
    "拔择抛拜据扩举捝挲挟插搜舍扪挨卷扫抡㧏挜挣挂采揭搔拣扬换挥搄摇损摇捣揾抢摄掴掼搂挚抠抟折掺击捞挦撑挠㧑挢掸拨抚扑"
    "揿搅挞挝捡拥掳择击挡㧟担据挤捣拟摈拧搁掷扩撷摆擞撸㧰扰摅撵拢拦撄搀撺携摄攒挛摊搅揽教敚败叙敌数敛毙敩齐斋斓斩断于"
    "旗既升时晋昼晚晓晕晖旸畅历暂暨晔历昙晓向暧旷昽晒书曾会胧术东拐栅拐查荣樱枡栈杆栀枧条枭棁弃棋枨枣栋㭎栈栖梾桠检㭏"
    "杨枫榆桢业极乐矩干杩荣榅桤构枪杠样梿椠椁椮桨椢椝桩乐枞梁楼标枢㭤样榝权㭴桪朴树桦椫桡桥机椭横檩柽档桧槚检樯梼台槟"
    "柠槛柜橹榈栉椟橼栎橱槠栌枥橥榇蘖栊榉樱栏榉权椤栾榄棂钦叹欧欢欤欢步齿岁岁历历归殁残殒殇㱮殚僵殓殡㱩歼杀壳壳毁殴每"
    "毵牦毡氇气气氢氩氲泛泛污污决没冲泽况溯泄汹净滨浃泾涚泪凉凄泪渌净凌沦渊涞浅渴济涉涩溪沈涣减沨涡测浑凑浈涌汤满沩泼"
    "准沟温浉涢湿沧灭涤荥汇泷沪滞渗卤浒浐滚满渔溇沤汉涟渍涨溆渐浆颍泼洁沩㴋潜润浔溃滗涠涩浇涝沄涧渑泽滪泶浍淀㳠浊浓㳡"
    "湿泞溁蒙浕济涛㳔滥潍滨滨溅泺滤澛滢渎㲿泻沈浏濒泸沥潇潆潴泷濑濑弥潋澜沣滠洒漓滩灏㳕湾滦滟滟灾为乌烃焰无烧炼炜烟茕"
    "焕烦炀㶽煴荧炝热颎炽烨灯炖烧烫焖营灿毁烛烩㶶熏烬焘烁炉烂争为爷尔床墙牍它抵牵荦牦牺犊牺状狭狈狰猎犹狲犸呆狱狮奖兽"
    "独狯猃狝狞㺍获猎犷兽獭献猕猡现雕珐珲玮玚琐瑶莹玛玱琏琎玑瑷珰㻅环玙瑸玺璇琼珑璎瓒瓯瓮什产产苏宁划亩毕划异叠划当畴"
    "叠痉酸瘦痹疴痖疯疡痪瘗疮疟瘆疭瘘瘘疗痨痫瘅愈疠瘪痴痒疖症疬癞癣瘿瘾痈瘫癫发发皂皋皑疱皲皱杯盗盏尽监盘卢荡县真眦众"
    "困睁睐眍䁖瞒了瞆睑蒙眬瞩矫碎朱硁硖砗砚埼硕砀砜确码䂵硙砖硵碜碛矶硗䃅硚硷础碍矿砺砾矾砻只秘只禄祸祯祎祃御禅礼祢祷"
    "秃籼税秆䅉棱禀种称稻谷穗䅟稣积颖稳秾穑秽穰稳获穞窝洼穷窑窎窭窥灶窜窍窦灶窃龙并竖竞笔笋笕䇲个笺筝节范筑箧筼筿笃筛"
    "筚箦篓蓑箪简篑箫筜签帘篮筹䉤箓篯箨籁笼签笾簖篱箩吁粹肃妆粤粽糁粪粮团粝籴粜丝纟纠纪纣约红纡纥纨纫纹纳纽纾纯纰纼纱"
    "纮纸级纷纭纴纺䌷扎细绂绁绅纻绍绀绋绐绌终弦组䌹绊经绗结绝绦绔绞络绚给绒绖统丝绛绘绝绢绑绡绠绨绣绤绥䌼捆经继续综缍"
    "绿绸绻线绶维绹绾纲网绷缀彩纶绺绮绽绰绫绵绲缁紧绯总绿绪绬绱缃缄缂线缉缎缔缗缘缌编缓缅纬缑缈练缏缇致缊缘绳萦缙缢缒"
    "绉缣缊缞缚缜缟缛县纵绦缝缡缩纵缧䌸纤缦絷缕缥总绩绷缫缪纤系绣缯织缮缭绕绣缋绳绘系茧缰缳缲缴䍁绎继缤缱䍀颣缬纩续累"
    "缠缨才纤缵缆线钵䓨坛罂坛罚骂罢罗罴羁芈群羟羡义膻习玩翚翘翙耧耢圣闻聪联聪声耸听聩聂职聍听聋肃胁脉胫唇修脱脑胀肾胨"
    "脶脑肿脚肠腽腘肤䏝胶腻胆脍脓脸脐膑脏腊胪脏脔臜卧临台与兴举旧舍铺馆舱舣舰舻艰艳艺刍苎荔兹荆庄庄茎荚苋华庵烟苌莱万"
    "荝莴叶荭着荮苇药荤搜莼莳蒀莅苍荪席盖莲苁莼荜卜参蒌蒋葱茑荫藏荨蒇荞荬艺莸荛蒉荡芜萧蓣蕰荟蓟芗姜蔷荙莶荐萨薰药䓕苎"
    "䓓苔荠借蓝荩艺药薮䓖蕴苈蔼蔺萚蕲芦苏蕴苹藓蔹茏兰蓠萝蔂处虚虏号亏虬萤蛱蜕蚬蜡蚀猬虾虱蜗蛳蚂萤䗖蝼螀蛰蝈螨虮蝉蛲虫"
    "蛏蚁蚃蝇虿蝎蛴蝾蚝蜡蛎蟏蛊蚕蛮众蔑术同胡卫冲只衮袅里补装里制复裈袆裤裢褛亵裥裥袯袄裣裆褴袜摆衬袭襕复霸核见觃规觅"
    "视觇觉觋觍觎览亲觊觏觐观觑觉览觌观觞觯触讠订讣计讯讧讨讦讱训讪讫托记讹讶讼䜣诀讷讻访设许译诉诃诊注证诂诋讵诈诒诏"
    "评诐诇诎诅词咏诩询诣试诗诧诟诡诠诘话该详诜诙诖诔诛诓夸志认诳诶诞诱诮语诚诫诬误诰诵诲说说读谁课谇诽谊訚调谄谆谈诿"
    "请诤诹诼谅论谂谀谍谞谝谥诨谔谛谐谏谕咨讳谙谌讽诸谚谖诺谋谒谓誊诌谎谜谧谑谡谤谦谥讲谢谣谣谟谪谬谫讴谨谩哗证谲讥谮"
    "识谯谭谱噪谵毁译议让谴护诪誉谫读谉变詟䜩雠谗让谰谶赞谠谳托咨岂丰竖丰艳猪豮猫䝙贝贞贠负财贡贫货贩贪贯责贮贳赀贰贵"
    "贬买贷贶费贴贻贸贺贲赂赁贿赅资贾贼赈赊宾赇赒赉赞赐赏赔赓贤卖贱赋赕质赍账赌䞐赖赗赚赙购赛赜贽赘赟赠赞赝赡赢赆赃赑"
    "赎赝赣赃赪赶赵趋趱迹践逾踊跄跸迹跖蹒踪跷跶趸踌跻跃䟢踯跞踬蹰跹蹑蹿躜躏躯车轧轨军轪轩轫轭软转轷轸轱轴轵轺轲轶轻轼"
    "较辂辁辀载轾辆辄挽辅轻辆辎辉辋辍辊辇辈轮辌辑辏输辐辒辗舆辒毂辖辕辘转辙轿辚轰辔轹轳办辞辫辩农边回递迳这连周进迟游"
    "运过达违遥逊递远溯适迟迁选遗辽迈还迩边边逻逦郏邮乡郓乡邹邬郧邓郑邻郸邺郐邝酂郦醉腌酝酦丑酝蒏糖酱医酱酦酿酿衅酾酽"
    "释释厘钅钆钇钌钊钉钋针钓钐扣钏钒钗钍钕钎䥺钯钫钘钭钥钚钠钝钩钤钣钑钞钮钧钟钙钬钛钪铌铈钶铃钴钹铍钰钸铀钿钾铁巨钻"
    "铊铉铇铋铂钷钳铆铅钺钵钩钲钼钽鑛锫铏铰铒铬铪银铳铜铚铣铨铢铭铫铦衔铑铷铱铟铵铥铕铯铐钱铞锐销锈锑锉铝锒锌钡铤铗锋"
    "铻锊锓铘锄锃锔锇铓铺锐铖锆锂铽铸锍锯钢锞录锖锫锩铔锥锕锟锤锱铮锛锬锭锜钱锦锚锠锡炼锢错录锰表铼镎锝锨锪钫钔锴锳炼"
    "锅镀锷铡钖锻锽锸锲锘锹锾键锶锗针钟镁锿镅镑镰镕锁镉锤镈镃钨蓥镏铠铩锼镐镇镇镒镋镍镓鿔镌镎镞旋炼镆镙镠镝铿锵镗镘镛"
    "铲镜镖镂錾镚铧镤镪䥽锈铙铴镣铹镦镡钟镫镢镨䦅锎锏镄镌镰䦃镯镭铁镮铎铛镱铸镬镔鉴鉴镲锧镴铄镳镥镧钥镵镶镊镩锣钻銮凿"
    "镢镋巨炼钟长门闩闪闫闬闭开闶闳闰闲闲间闵闸闹阂关阁合阀闺闽阃阆闾阅阅阊阉阎阏阍阈阌阒板暗闱阔阕阑阇阗阘闿阖阙闯斗"
    "关阚阓阐辟阛闼陉陕升阵陷阴陈陆险阳陧队阶陨际隐随险陦隐陇隶只隽杂虽双雏杂鸡离难云电灵沾霡雾霁雳霭叇灵叆靓静靔腼靥"
    "巩绱秋鞒缰鞑千鞯韦韧韨韩韪韬鞲韫韵响页顶顷项顺顸须顼颂颀颃预顽颁顿颇领颌颉颐颏头颒颊颋颕颔颈颓频赖颓颗题额颚颜颙"
    "颛颜显愿颡颠类颟颢顾颤颥显颦颅颞颧风飐飑飒台刮飓飔飏飖飕飗飘飙飚飞饣饥饤饦饨饪饫饬饭飧饮饴饲饱饰饳饺饸饼糍饷养饵"
    "饹饻饽馁饿馂饾余肴馄馃饯馅馆糊糇饧喂馉馇馎饩馏馊馌馍馒馐馑馓馈馔饥饶飨餍馋馕余马驭冯驮驰驯驲驳驿驱驻驽驹驵驾骀驸"
    "驶驼驷骂骈骇骃骆骎骏骋骍骓骔骒骑骐骚验骛骗骙䯄骞骘骝腾驺骚骟骡蓦骜骖骠骢驱骅骕骁骣骄验惊驿骤驴骧骥骦骊骉肮髓髅脏"
    "体髌髋高发发松胡须鬓斗闹哄阋斗斗阄郁鬶魉魇鱼鱽鱾鲀鲁鲂鱿鲄鲅鲆鲌鲉鲏鲇鲐鲍鲋鲊鲒鲘鲞鲕䲟鲖鲔鲛鲑鲜鲓鲪鲝鲧鲠鲩鲤"
    "鲨鲬鲻鲯鲭鲞鲷鲴鲱鲵鲲鲳鲸鲮鲰鲶鲺鳀鲫鳊鳈鲗鳂䲠鲽鳇䲡鳅鲾鳄鳆鳃鳁鳒鳑鳋鲥鳏䲢鳎鳐鳍鳁鲢鳌鳓鳘鲦鲣鲹鳗鳛鳔鳉鳙鳕"
    "鳖鳟鳝鳜鳞鲟鲼鲎鲙鳣鳡鳢鲿鲚鳠鳄鲈鲡鸟凫鸠凫鸤凤鸣鸢䴓鸩鸨鸦鸥鸰鸵鸳鸲鸮鸱鸪鸯鸭鸸鸹鸻䴕鸿鸽䴔鸺鸼鹀鹃鹆鹁鹈鹅鹄"
    "鹉鹌鹏鹐鹎雕鹊鹓鹍䴖鸫鹑鹒鸡鹋鹙鹕鹗鹖鹛鹜䴗鸧莺鹟鹤鹠鹡鹘鹣鹚鹚鹢鹞鸡䴘鹝鹧鹥鸥鸷鹨鸶鹪鹔鹩鹫鹇鹇鹬鹰鹭鸴㶉鹯䴙"
    "鹱鹲鸬鹴鹦鹳鹂鸾卤碱咸鹾碱盐丽麦麸面面曲曲面曲面么么黄黉黑默点党黪霉黡黩黾鼋鼌鳖鼍冬鼹齐斋赍齑齿龀龁龂龅龇龃龆龄"
    "龄出龈啮龊龉龋腭龌龙厐庞䶮龚龛龟䜤鿒崎"
)
"""The character at the same place counts for the variant."""

VERSION = 4

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0edf\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u17dc\u17dd\u2e80-\u2fdf"
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7fb\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
LETTER = rf"[^\W_{_UNSPACED}]"
"""As part of a regular expression: a letter or digit of a script written with spaces."""
_ABOVE = (
    "\u0300-\u036f\u0483-\u0487\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0981-\u0983\u09bc-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03"
    "\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d81-\u0d83"
    "\u0dca-\u0ddf\u0f35\u0f37\u0f39\u0f71-\u0f84\u135d-\u135f\u180b-\u180d\u1ab0-\u1ace\u1dc0-\u1dff\u20d0-\u20dc"
)
"""Signs that belong to the letter before them: vowels of Indian scripts, accents that have no letter of their own."""
WORD = re.compile(rf"[^\W_]++(?:[{_ABOVE}]++[^\W_]*+)*+")
"""A word of folded text, as the tokenizer of `messages_fts` cuts it."""

SCOPE = "\ue000"
"""Begins the word that names a scope in an index; folding takes it out of all else, so nobody can type it."""

_RUN = re.compile(f"[{_UNSPACED}]+")
_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u00ad\ue000"
_SISTERS = "ёЁάέήίόύώΆΈΉΊΌΎΏΐΰϊϋΪΫأإآٱىیکةøØłŁđĐıİ"
_PLAIN = "еЕαεηιουωΑΕΗΙΟΥΩιυιυΙΥااااييكهoOlLdDiI"  # noqa: RUF001
"""Letters that are as often written without their sign and that SQLite's tokenizer keeps apart. Arabic as in Lucene's
ArabicNormalizer (after Larkey et al., 2002), with the Persian kaf and yeh."""
_CHANGED = re.compile(f"[{_MARKS}{VARIANTS}{_SISTERS}]")
"""Marks and variants in one class: text of other scripts pays for one scan, not for two."""
_WIDE = (("\uff0c", ","), ("\uff1f", "?"), ("\uff01", "!"), ("\uff1a", ":"), ("\u3000", " "))
"""NFKC does the same, but text without these is often normal as it stands, and seen to be so ten times as fast."""
_SIMPLIFIED = str.maketrans(VARIANTS + _SISTERS, SIMPLIFIED + _PLAIN)
_PIECE = re.compile(f"([{_UNSPACED}]+)|([\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff])")
_JOINED = re.compile(
    "[\u1100-\u115f\ua960-\ua97c][\u1160-\u11a7\ud7b0-\ud7c6][\u11a8-\u11ff\ud7cb-\ud7fb]?|[\uffa1-\uffbe][\uffc2-\uffdc]"
    "|[\u3046-\u3062\u304b-\u307b\u30a6-\u30db\u30ef-\u30f2\uff73-\uff8e\uff9c][\u3099\u309a\uff9e\uff9f]"
)
"""What NFKC joins to one character across two or three: Hangul in letters, Kana with a sound mark behind."""
_UNIT = re.compile(f"{_JOINED.pattern}|.", re.DOTALL)
_YOUNG = re.compile("[^\\w\0-\u057f\u0900-\u2064]")
"""Where signs stand that may be younger than SQLite's tokenizer, which takes them for letters: most emoji, skin tones,
currencies like the rouble's, isolates around a name. ``thanks🥰`` would be one word."""


def fold(text: str) -> str:
    """NFKC (full and half width, ligatures), Han characters in their simplified form, `_SISTERS` as their plain
    letters, without soft hyphens, Hebrew points, Arabic vowel signs, tatweel, and the character that begins a scope's
    word."""
    if text.isascii():
        return text
    for wide, narrow in _WIDE:
        text = text.replace(wide, narrow)
    return _CHANGED.sub(_changed, unicodedata.normalize("NFKC", text))


def _changed(match: re.Match[str]) -> str:
    code = _SIMPLIFIED.get(ord(match[0]))
    return "" if code is None else chr(code)


def spaced_words(text: str | None) -> str:
    """What `messages_fts` holds: the folded text without its unspaced runs, so that ``修改youer服务端`` gives youer."""
    if not text or text.isascii():
        return text or ""
    return _YOUNG.sub(_apart, _RUN.sub(" ", fold(text)))


def _apart(match: re.Match[str]) -> str:
    return match[0] if unicodedata.category(match[0]) in ("Mn", "Mc") else " "


def unspaced_runs(*texts: str | None) -> str:
    """What `messages_fts_trigram` holds: the unspaced runs alone, a blank between two; empty for most messages."""
    return " ".join(run for text in texts if text and not text.isascii() for run in _RUN.findall(fold(text)))


def unspaced_pairs(*texts: str | None) -> str:
    """What `messages_fts_pairs` holds: every two neighbouring characters of each run, every single one, and symbols
    (emoji) by code point. ``数据库 👍`` gives ``数据 据库 数 据 库 u1f44d``."""
    tokens: list[str] = []
    for text in texts:
        if text and not text.isascii():
            for piece in _PIECE.finditer(fold(text)):
                tokens.extend([*pairs_of(piece[1]), *piece[1]] if piece[1] else [symbol_token(piece[2])])
    return " ".join(tokens)


def parted(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A text folded and parted: without its runs and symbols, and these in order, as ``(run, "")`` or
    ``("", symbol)``."""
    folded = fold(text)
    return _PIECE.sub(" ", folded), _PIECE.findall(folded)


def pairs_of(run: str) -> list[str]:
    """Every two neighbouring characters of a run."""
    return [run[index : index + 2] for index in range(len(run) - 1)]


def symbol_token(symbol: str) -> str:
    """An emoji as a token; spelled out, because tokenizers know only the emoji of their own year."""
    return f"u{ord(symbol):x}"


def pieces(text: str) -> list[tuple[str, str]]:
    """Cuts folded text into ``("words" | "run" | "symbol", part)``; what is neither letter, digit nor symbol is left
    in the words parts, and parts without any of these are dropped."""
    if text.isascii():
        return [("words", text)] if WORD.search(text) else []
    found: list[tuple[str, str]] = []
    end = 0
    for match in _PIECE.finditer(text):
        found.append(("words", _YOUNG.sub(_apart, text[end : match.start()])))
        found.append(("run", match[1]) if match[1] else ("symbol", match[2]))
        end = match.end()
    found.append(("words", _YOUNG.sub(_apart, text[end:])))
    return [(kind, part) for kind, part in found if kind != "words" or WORD.search(part)]


def is_unspaced(text: str) -> bool:
    """Whether folded text begins with a run or a symbol: it is then found inside of others, without word limits."""
    return _PIECE.match(text) is not None


def words_of(text: str) -> list[str]:
    """The words of folded text, as the tokenizer of `messages_fts` cuts them but with their case."""
    return WORD.findall(text)


@lru_cache(maxsize=4096)
def plain_character(character: str) -> str:
    """One character (with the signs it is written with, see `_JOINED`) as it is compared for marking matches: folded,
    lower case, Latin diacritics removed."""
    folded = fold(character)
    if _RUN.match(folded):
        return folded
    bare = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return (bare or folded).lower()


def plain(text: str) -> tuple[str, list[int] | None]:
    """Text as it is compared for marking matches, and for each of its characters the index in `text` it came from
    (None: the same index)."""
    if text.isascii():
        return text.lower(), None
    parts = list(map(plain_character, text)) if _JOINED.search(text) is None else []
    compared = "".join(parts)
    if len(compared) == len(text) and "" not in parts:
        return compared, None
    characters: list[str] = []
    origins: list[int] = []
    for match in _UNIT.finditer(text):
        for part in plain_character(match[0]):
            characters.append(part)
            origins.append(match.start())
    return "".join(characters), origins
