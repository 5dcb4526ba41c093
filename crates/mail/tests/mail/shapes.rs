//! How the usual programs write a reply: what was written, what is quoted, what they put between.

use crate::harness::{Mail, base64};

/// The words of a language.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    /// The attribution above a quote, with `{name}` and `{address}`.
    pub(crate) wrote: &'static str,
    /// The names of sender, date, recipient and subject in quoted headers.
    pub(crate) headers: [&'static str; 4],
    /// The text between dashes above a quoted mail.
    pub(crate) original: &'static str,
    /// A telephone's signature.
    pub(crate) phone: &'static str,
}

const fn language(
    name: &'static str,
    wrote: &'static str,
    headers: [&'static str; 4],
    original: &'static str,
    phone: &'static str,
) -> Language {
    Language { name, wrote, headers, original, phone }
}

pub(crate) const LANGUAGES: &[Language] = &[
    language(
        "en",
        "On Wed, May 1, 2024 at 10:00 AM {name} <{address}> wrote:",
        ["From", "Sent", "To", "Subject"],
        "Original Message",
        "Sent from my iPhone",
    ),
    language(
        "de",
        "Am Mi., 1. Mai 2024 um 10:00 Uhr schrieb {name} <{address}>:",
        ["Von", "Gesendet", "An", "Betreff"],
        "Ursprüngliche Nachricht",
        "Von meinem iPhone gesendet",
    ),
    language(
        "fr",
        "Le mer. 1 mai 2024 à 10:00, {name} <{address}> a écrit :",
        ["De", "Envoyé", "À", "Objet"],
        "Message d'origine",
        "Envoyé de mon iPhone",
    ),
    language(
        "es",
        "El mié, 1 may 2024 a las 10:00, {name} (<{address}>) escribió:",
        ["De", "Enviado", "Para", "Asunto"],
        "Mensaje original",
        "Enviado desde mi iPhone",
    ),
    language(
        "it",
        "Il giorno mer 1 mag 2024 alle ore 10:00 {name} <{address}> ha scritto:",
        ["Da", "Inviato", "A", "Oggetto"],
        "Messaggio originale",
        "Inviato da iPhone",
    ),
    language(
        "pt",
        "Em qua., 1 de mai. de 2024 às 10:00, {name} <{address}> escreveu:",
        ["De", "Enviado", "Para", "Assunto"],
        "Mensagem original",
        "Enviado do meu iPhone",
    ),
    language(
        "nl",
        "Op wo 1 mei 2024 om 10:00 schreef {name} <{address}>:",
        ["Van", "Verzonden", "Aan", "Onderwerp"],
        "Oorspronkelijk bericht",
        "Verstuurd vanaf mijn iPhone",
    ),
    language(
        "sv",
        "Den ons 1 maj 2024 kl 10:00 skrev {name} <{address}>:",
        ["Från", "Skickat", "Till", "Ämne"],
        "Ursprungligt meddelande",
        "Skickat från min iPhone",
    ),
    language(
        "da",
        "Den ons. 1. maj 2024 kl. 10.00 skrev {name} <{address}>:",
        ["Fra", "Sendt", "Til", "Emne"],
        "Oprindelig meddelelse",
        "Sendt fra min iPhone",
    ),
    language(
        "nb",
        "ons. 1. mai 2024 kl. 10:00 skrev {name} <{address}>:",
        ["Fra", "Sendt", "Til", "Emne"],
        "Opprinnelig melding",
        "Sendt fra min iPhone",
    ),
    language(
        "fi",
        "ke 1. toukok. 2024 klo 10.00 {name} ({address}) kirjoitti:",
        ["Lähettäjä", "Lähetetty", "Vastaanottaja", "Aihe"],
        "Alkuperäinen viesti",
        "Lähetetty iPhonesta",
    ),
    language(
        "pl",
        "śr., 1 maj 2024 o 10:00 {name} <{address}> napisał(a):",
        ["Od", "Wysłano", "Do", "Temat"],
        "Wiadomość oryginalna",
        "Wysłane z iPhone'a",
    ),
    language(
        "cs",
        "st 1. 5. 2024 v 10:00 odesílatel {name} <{address}> napsal:",
        ["Od", "Odesláno", "Komu", "Předmět"],
        "Původní zpráva",
        "Odesláno z iPhonu",
    ),
    language(
        "ru",
        "ср, 1 мая 2024 г. в 10:00, {name} <{address}>:",
        ["От", "Отправлено", "Кому", "Тема"],
        "Исходное сообщение",
        "Отправлено с iPhone",
    ),
    language(
        "uk",
        "ср, 1 трав. 2024 р. о 10:00 {name} <{address}> пише:",
        ["Від", "Надіслано", "Кому", "Тема"],
        "Original Message",
        "Надіслано з iPhone",
    ),
    language(
        "tr",
        "{name} <{address}>, 1 May 2024 Çar, 10:00 tarihinde şunu yazdı:",
        ["Kimden", "Gönderildi", "Kime", "Konu"],
        "Orijinal mesaj",
        "iPhone'umdan gönderildi",
    ),
    language(
        "hu",
        "{name} <{address}> ezt írta (időpont: 2024. máj. 1., Sze, 10:00):",
        ["Feladó", "Elküldve", "Címzett", "Tárgy"],
        "Original Message",
        "Sent from my iPhone",
    ),
    language(
        "ro",
        "mie., 1 mai 2024, 10:00 {name} <{address}> a scris:",
        ["De la", "Trimis", "Către", "Subiect"],
        "Original Message",
        "Trimis de pe iPhone",
    ),
    language(
        "el",
        "Στις Τετ 1 Μαΐ 2024 στις 10:00, ο χρήστης {name} <{address}> έγραψε:",
        ["Από", "Στάλθηκε", "Προς", "Θέμα"],
        "Original Message",
        "Στάλθηκε από το iPhone μου",
    ),
    language(
        "ja",
        "2024年5月1日(水) 10:00 {name} <{address}>:",
        ["差出人", "送信日時", "宛先", "件名"],
        "元のメッセージ",
        "iPhoneから送信",
    ),
    language(
        "zh",
        "{name} <{address}> 于2024年5月1日周三 10:00写道：",
        ["发件人", "发送时间", "收件人", "主题"],
        "原始邮件",
        "发自我的 iPhone",
    ),
    language(
        "tw",
        "{name} <{address}> 於 2024年5月1日 週三 上午10:00寫道：",
        ["寄件者", "寄件日期", "收件者", "主旨"],
        "原始郵件",
        "從我的 iPhone 傳送",
    ),
    language(
        "ko",
        "2024년 5월 1일 (수) 오전 10:00, {name} <{address}>님이 작성:",
        ["보낸 사람", "보낸 날짜", "받는 사람", "제목"],
        "원본 메시지",
        "나의 iPhone에서 보냄",
    ),
    language(
        "he",
        "\u{202b}בתאריך יום ד׳, 1 במאי 2024 ב-10:00 מאת \u{202a}{name}\u{202c}\u{200f} <\u{202a}{address}\u{202c}\u{200f}>:\u{202c}",
        ["מאת", "נשלח", "אל", "נושא"],
        "Original Message",
        "נשלח מה-iPhone שלי",
    ),
    language(
        "ar",
        "في الأربعاء، ١ مايو ٢٠٢٤ في ١٠:٠٠ تمت كتابة ما يلي بواسطة {name} <{address}>:",
        ["من", "تم الإرسال", "إلى", "الموضوع"],
        "Original Message",
        "أُرسلت من الـ iPhone",
    ),
    language(
        "vi",
        "Vào Th 4, 1 thg 5, 2024 vào lúc 10:00 {name} <{address}> đã viết:",
        ["Từ", "Đã gửi", "Đến", "Chủ đề"],
        "Original Message",
        "Đã gửi từ iPhone của tôi",
    ),
    language(
        "id",
        "Pada tanggal Rab, 1 Mei 2024 pukul 10.00 {name} <{address}> menulis:",
        ["Dari", "Dikirim", "Kepada", "Subjek"],
        "Original Message",
        "Dikirim dari iPhone saya",
    ),
];

/// Whom the approver answers.
const ASKER: (&str, &str) = ("Acme approvals", "approvals@acme.example");

/// What is made into a reply.
pub(crate) struct Talk<'t> {
    pub(crate) own: &'t str,
    /// The lines of the mail that is answered.
    pub(crate) quoted: &'t [String],
    pub(crate) language: &'t Language,
}

impl Talk<'_> {
    fn wrote(&self) -> String {
        self.language.wrote.replace("{name}", ASKER.0).replace("{address}", ASKER.1)
    }

    /// The attribution, wrapped at this many characters.
    fn wrapped(&self, columns: usize) -> String {
        let mut text = String::new();
        let mut column = 0;
        for word in self.wrote().split(' ') {
            let length = word.chars().count();
            if column > 0 && column + length + 1 > columns {
                text.push('\n');
                column = 0;
            } else if column > 0 {
                text.push(' ');
                column += 1;
            }
            text.push_str(word);
            column += length;
        }
        text
    }

    fn marked(&self) -> String {
        self.quoted
            .iter()
            .map(|line| if line.is_empty() { ">\n".into() } else { format!("> {line}\n") })
            .collect()
    }

    fn headers(&self, mark: &str) -> String {
        let [from, sent, to, subject] = self.language.headers;
        let rows = [
            (from, format!("{} <{}>", ASKER.0, ASKER.1)),
            (sent, "2024-05-01 10:00".to_owned()),
            (to, "Dana Reed <dana@corp.example>".to_owned()),
            (subject, "Approve? deploy-gate".to_owned()),
        ];
        rows.map(|(name, value)| format!("{mark}{name}:{mark} {value}\n")).concat()
    }

    fn lines(&self) -> String {
        self.quoted.iter().map(|line| format!("{line}\n")).collect()
    }

    fn own_html(&self) -> String {
        self.own
            .lines()
            .map(|line| format!("<div>{}</div>", if line.is_empty() { "<br>" } else { line }))
            .collect()
    }

    fn quoted_html(&self) -> String {
        self.quoted.iter().map(|line| format!("<p>{line}</p>\n")).collect()
    }

    fn headers_html(&self) -> String {
        self.headers("").replace('<', "&lt;").replace('>', "&gt;").replace('\n', "<br>\n")
    }

    fn wrote_html(&self) -> String {
        let wrote = self.wrote().replace('<', "&lt;").replace('>', "&gt;");
        wrote.replace(ASKER.1, &format!("<a href=\"mailto:{0}\">{0}</a>", ASKER.1))
    }
}

/// A way of writing replies.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Whether the answer is below the quote.
    pub(crate) bottom: bool,
    pub(crate) mail: fn(&Talk<'_>) -> Mail,
}

pub(crate) const SHAPES: &[Shape] = &[
    Shape { name: "gmail plain", bottom: false, mail: gmail_plain },
    Shape { name: "gmail", bottom: false, mail: gmail },
    Shape { name: "gmail html", bottom: false, mail: gmail_html },
    Shape { name: "apple", bottom: false, mail: apple },
    Shape { name: "apple html", bottom: false, mail: apple_html },
    Shape { name: "iphone", bottom: false, mail: iphone },
    Shape { name: "thunderbird", bottom: false, mail: thunderbird },
    Shape { name: "thunderbird html", bottom: false, mail: thunderbird_html },
    Shape { name: "thunderbird below", bottom: true, mail: thunderbird_below },
    Shape { name: "thunderbird html below", bottom: true, mail: thunderbird_html_below },
    Shape { name: "mutt below", bottom: true, mail: mutt_below },
    Shape { name: "outlook plain", bottom: false, mail: outlook_plain },
    Shape { name: "outlook old", bottom: false, mail: outlook_old },
    Shape { name: "outlook web", bottom: false, mail: outlook_web },
    Shape { name: "outlook desktop", bottom: false, mail: outlook_desktop },
    Shape { name: "outlook phone", bottom: false, mail: outlook_phone },
    Shape { name: "outlook desktop, with lists", bottom: false, mail: outlook_lists },
    Shape { name: "outlook web, with fonts", bottom: false, mail: outlook_fonts },
    Shape { name: "gmail, with fonts", bottom: false, mail: gmail_fonts },
    Shape { name: "apple, with fonts", bottom: false, mail: apple_fonts },
    Shape { name: "apple, with our style", bottom: false, mail: apple_our_style },
    Shape { name: "android", bottom: false, mail: android },
    Shape { name: "kmail", bottom: false, mail: kmail },
    Shape { name: "yahoo", bottom: false, mail: yahoo },
    Shape { name: "proton", bottom: false, mail: proton },
    Shape { name: "stars", bottom: false, mail: stars },
    Shape { name: "gmail phone", bottom: false, mail: gmail_phone },
    Shape { name: "fastmail", bottom: false, mail: fastmail },
    Shape { name: "gmx", bottom: false, mail: gmx },
    Shape { name: "zoho", bottom: false, mail: zoho },
];

/// A message of two alternatives.
pub(crate) fn alternative(plain: &str, html: &str) -> Mail {
    let part = |kind: &str, text: &str| {
        let text = base64(text.replace('\n', "\r\n").as_bytes());
        let lines: Vec<&str> =
            text.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!(
            "--b1\nContent-Type: {kind}; charset=\"UTF-8\"\nContent-Transfer-Encoding: base64\n\n{}\n\n",
            lines.join("\n")
        )
    };
    let body = part("text/plain", plain) + &part("text/html", html) + "--b1--\n";
    Mail::new("multipart/alternative; boundary=\"b1\"", &body).set("Content-Transfer-Encoding", "7bit")
}

fn gmail_text(talk: &Talk<'_>) -> String {
    format!("{}\n\n{}\n\n{}", talk.own, talk.wrapped(76), talk.marked())
}

fn gmail_markup(talk: &Talk<'_>) -> String {
    format!(
        "<div dir=\"ltr\">{}</div><br><div class=\"gmail_quote gmail_quote_container\"><div dir=\"ltr\" class=\"gmail_attr\">{}<br></div><blockquote class=\"gmail_quote\" style=\"margin:0px 0px 0px 0.8ex;border-left:1px solid rgb(204,204,204);padding-left:1ex\">{}</blockquote></div>\n",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    )
}

fn gmail_plain(talk: &Talk<'_>) -> Mail {
    Mail::plain(&gmail_text(talk))
}

fn gmail(talk: &Talk<'_>) -> Mail {
    alternative(&gmail_text(talk), &gmail_markup(talk))
}

fn gmail_html(talk: &Talk<'_>) -> Mail {
    Mail::html(&gmail_markup(talk))
}

fn apple(talk: &Talk<'_>) -> Mail {
    Mail::plain(&format!("{}\n\n> {}\n> \n{}", talk.own, talk.wrote(), talk.marked()))
}

fn apple_html(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head><meta http-equiv=\"content-type\" content=\"text/html; charset=utf-8\"></head><body style=\"overflow-wrap: break-word; -webkit-nbsp-mode: space; line-break: after-white-space;\">{}<div><br><blockquote type=\"cite\"><div>{}</div><br class=\"Apple-interchange-newline\"><div>{}</div></blockquote></div><br></body></html>",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    ))
}

fn iphone(talk: &Talk<'_>) -> Mail {
    Mail::plain(&format!(
        "{}\n\n{}\n\n> {}\n> \n> \u{feff}\n{}",
        talk.own,
        talk.language.phone,
        talk.wrote(),
        talk.marked()
    ))
}

/// Lines without trailing blanks, which would join them with the next (RFC 3676, 4.2).
fn flowed(own: &str) -> String {
    own.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn thunderbird(talk: &Talk<'_>) -> Mail {
    let body = format!("{}\n\n{}\n{}", flowed(talk.own), talk.wrapped(72), talk.marked());
    Mail::new("text/plain; charset=UTF-8; format=flowed", &body)
}

fn thunderbird_below(talk: &Talk<'_>) -> Mail {
    let body = format!("{}\n{}\n\n{}\n\n-- \nDana\n", talk.wrapped(72), talk.marked(), flowed(talk.own));
    Mail::new("text/plain; charset=UTF-8; format=flowed", &body)
}

fn mutt_below(talk: &Talk<'_>) -> Mail {
    Mail::plain(&format!("{}\n\n{}\n{}\n", talk.wrote(), talk.marked(), talk.own))
}

fn thunderbird_html(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<!DOCTYPE html><html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"></head><body>{}<p><br></p><div class=\"moz-cite-prefix\">{}<br></div><blockquote type=\"cite\" cite=\"mid:a.tok1@reply.acme.example\">{}</blockquote></body></html>",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    ))
}

fn thunderbird_html_below(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head></head><body><div class=\"moz-cite-prefix\">{}<br></div><blockquote type=\"cite\">{}</blockquote><p><br></p>{}<div class=\"moz-signature\">-- <br>Dana</div></body></html>",
        talk.wrote_html(),
        talk.quoted_html(),
        talk.own_html()
    ))
}

fn outlook_plain(talk: &Talk<'_>) -> Mail {
    Mail::plain(&format!(
        "{}\n\n________________________________\n{}\n{}",
        talk.own,
        talk.headers(""),
        talk.lines()
    ))
}

fn outlook_old(talk: &Talk<'_>) -> Mail {
    Mail::plain(&format!(
        "{}\n\n-----{}-----\n{}\n{}",
        talk.own,
        talk.language.original,
        talk.headers(""),
        talk.lines()
    ))
}

fn outlook_web(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head><style type=\"text/css\" style=\"display:none;\"> P {{margin-top:0;margin-bottom:0;}} </style></head><body dir=\"ltr\"><div class=\"elementToProof\" style=\"font-family: Aptos, Calibri, sans-serif; font-size: 12pt; color: rgb(0, 0, 0);\">{}</div><div id=\"appendonsend\"></div><hr style=\"display:inline-block;width:98%\" tabindex=\"-1\"><div id=\"divRplyFwdMsg\" dir=\"ltr\"><font face=\"Calibri, sans-serif\" style=\"font-size:11pt\" color=\"#000000\">{}</font><div>&nbsp;</div></div><div>{}</div></body></html>",
        talk.own_html(),
        talk.headers_html(),
        talk.quoted_html()
    ))
}

fn outlook_desktop(talk: &Talk<'_>) -> Mail {
    let own: String = talk
        .own
        .lines()
        .map(|line| {
            format!(
                "<p class=MsoNormal><span style='mso-fareast-language:EN-US'>{line}<o:p></o:p></span></p>\n"
            )
        })
        .collect();
    Mail::html(&format!(
        "<html xmlns:o=\"urn:schemas-microsoft-com:office:office\"><head><!--[if !mso]><style>v\\:* {{behavior:url(#default#VML);}}</style><![endif]--><style><!--\n/* Font Definitions */\n@font-face {{font-family:Calibri; panose-1:2 15 5 2 2 2 4 3 2 4;}}\np.MsoNormal, li.MsoNormal {{margin:0cm; font-size:11.0pt; font-family:\"Calibri\",sans-serif;}}\na:link, span.MsoHyperlink {{mso-style-priority:99; color:#0563C1; text-decoration:underline;}}\nspan.EmailStyle19 {{mso-style-type:personal-reply; color:windowtext;}}\n.MsoChpDefault {{mso-style-type:export-only; font-size:10.0pt;}}\n@page WordSection1 {{size:612.0pt 792.0pt; margin:72.0pt 72.0pt 72.0pt 72.0pt;}}\ndiv.WordSection1 {{page:WordSection1;}}\n--></style></head><body lang=EN-GB link=\"#0563C1\" vlink=\"#954F72\" style='word-wrap:break-word'><div class=WordSection1>{own}<p class=MsoNormal><o:p>&nbsp;</o:p></p><div><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal>{}</p></div></div><p class=MsoNormal><o:p>&nbsp;</o:p></p>{}</div></body></html>",
        talk.headers_html(),
        talk.quoted_html()
    ))
}

/// What Word writes into the head of a mail.
const WORD_HEAD: &str = r#"<meta name=Generator content="Microsoft Word 15 (filtered medium)"><link rel=File-List href="cid:filelist.xml@01DA9B"><link rel=themeData href="~~themedata~~"><!--[if !mso]><style>v\:* {behavior:url(#default#VML);}
o\:* {behavior:url(#default#VML);}</style><![endif]--><style>v\:* {behavior:url(#default#VML);}
.shape {behavior:url(#default#VML);}</style><style><!--
/* Font Definitions */
@font-face
	{font-family:Wingdings;
	panose-1:5 0 0 0 0 0 0 0 0 0;
	mso-font-charset:2;
	mso-generic-font-family:auto;
	mso-font-signature:0 268435456 0 0 -2147483648 0;}
@font-face
	{font-family:"Cambria Math";
	panose-1:2 4 5 3 5 4 6 3 2 4;}
@font-face
	{font-family:Aptos;}
/* Style Definitions */
p.MsoNormal, li.MsoNormal, div.MsoNormal
	{mso-style-unhide:no;
	mso-style-qformat:yes;
	mso-style-parent:"";
	margin:0cm;
	margin-bottom:.0001pt;
	mso-pagination:widow-orphan;
	font-size:11.0pt;
	font-family:"Aptos",sans-serif;
	mso-fareast-font-family:Aptos;
	mso-ligatures:standardcontextual;
	mso-fareast-language:EN-US;}
h1 {mso-style-link:"Heading 1 Char"; margin-top:18.0pt; page-break-after:avoid; mso-outline-level:1; font-size:20.0pt; color:#0F4761; mso-font-kerning:14.0pt;}
a:link, span.MsoHyperlink
	{mso-style-priority:99;
	color:#0563C1;
	mso-themecolor:hyperlink;
	text-decoration:underline;
	text-underline:single;}
a:visited, span.MsoHyperlinkFollowed {color:#954F72; text-decoration:underline;}
p.MsoListParagraph {margin-top:0cm; margin-right:0cm; margin-bottom:0cm; margin-left:36.0pt; mso-add-space:auto;}
span.EmailStyle19 {mso-style-type:personal-compose; mso-style-noshow:yes; mso-ansi-font-size:11.0pt; font-family:"Aptos",sans-serif; color:windowtext; font-weight:normal; font-style:normal;}
span.SpellE {mso-style-name:""; mso-spl-e:yes;}
.MsoChpDefault {mso-style-type:export-only; mso-default-props:yes; font-size:10.0pt; mso-ascii-font-family:Aptos; mso-font-kerning:0pt; mso-ligatures:none;}
.MsoPapDefault {mso-style-type:export-only; margin-bottom:8.0pt; line-height:107%;}
@page WordSection1
	{size:612.0pt 792.0pt;
	margin:72.0pt 72.0pt 72.0pt 72.0pt;
	mso-header-margin:36.0pt;
	mso-paper-source:0;}
div.WordSection1
	{page:WordSection1;}
/* List Definitions */
@list l0
	{mso-list-id:1205675426; mso-list-type:hybrid; mso-list-template-ids:1 2 3;}
@list l0:level1
	{mso-level-number-format:bullet; mso-level-text:\F0B7; mso-level-tab-stop:none; text-indent:-18.0pt; font-family:Symbol;}
ol {margin-bottom:0cm;}
ul {margin-bottom:0cm;}
--></style><!--[if gte mso 10]><style>table.MsoNormalTable {display:none}</style><![endif]--><!--[if gte mso 9]><xml><o:shapedefaults v:ext="edit" spidmax="1026" /></xml><![endif]-->"#;

fn outlook_lists(talk: &Talk<'_>) -> Mail {
    let own: String = talk
        .own
        .lines()
        .map(|line| {
            format!(
                "<p class=MsoNormal style='margin-bottom:12.0pt;line-height:115%;tab-stops:36.0pt'><a name=\"_MailEndCompose\"><span lang=EN-US style='font-size:11.0pt;line-height:115%;font-family:\"Aptos\",sans-serif;mso-ascii-theme-font:minor-latin;color:#1F497D;mso-themecolor:text2;mso-fareast-language:EN-US'>{line}<o:p></o:p></span></a></p>\n"
            )
        })
        .collect();
    let list = "<p class=MsoListParagraph style='margin-left:36.0pt;text-indent:-18.0pt;mso-list:l0 level1 lfo1'><![if !supportLists]><span style='font-family:Symbol;mso-fareast-font-family:Symbol;mso-bidi-font-family:Symbol'><span style='mso-list:Ignore'>·<span style='font:7.0pt \"Times New Roman\"'>&nbsp;&nbsp; </span></span></span><![endif]>first the logs<o:p></o:p></p>\n<table class=MsoNormalTable border=0 cellspacing=0 cellpadding=0 style='margin-left:-5.4pt;border-collapse:collapse;mso-yfti-tbllook:1184'><tr style='mso-yfti-irow:0;height:15.0pt'><td width=64 nowrap valign=bottom style='width:48.0pt;padding:0cm 5.4pt 0cm 5.4pt;height:15.0pt'><p class=MsoNormal style='text-align:justify;text-autospace:none'>a<o:p></o:p></p></td></tr></table>";
    Mail::html(&format!(
        "<html xmlns:v=\"urn:schemas-microsoft-com:vml\" xmlns:o=\"urn:schemas-microsoft-com:office:office\"><head>{WORD_HEAD}</head><body bgcolor=white lang=EN-US link=\"#0563C1\" vlink=\"#954F72\" style='tab-interval:36.0pt;word-wrap:break-word;-webkit-nbsp-mode: space;-webkit-line-break:after-white-space'><div class=WordSection1>{own}{list}<p class=MsoNormal><o:p>&nbsp;</o:p></p><div><div style='mso-element:para-border-div;border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal>{}</p></div></div>{}</div></body></html>",
        talk.headers_html(),
        talk.quoted_html()
    ))
}

fn outlook_fonts(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head><style type=\"text/css\" style=\"display:none\"><!-- P {{margin-top:0;margin-bottom:0;}} --></style></head><body dir=\"ltr\"><div id=\"divtagdefaultwrapper\" dir=\"ltr\" style=\"direction: ltr; font-size: 12pt; color: rgb(0, 0, 0); background-color: rgb(255, 255, 255); font-family: Calibri, Helvetica, sans-serif, &quot;EmojiFont&quot;, &quot;Apple Color Emoji&quot;, &quot;Segoe UI Emoji&quot;, NotoColorEmoji, &quot;Segoe UI Symbol&quot;, &quot;Android Emoji&quot;, EmojiSymbols;\"><div class=\"ContentPasted0\" style=\"text-align: left; text-indent: 0px; background: white; margin: 0px;\">{}</div></div><div id=\"appendonsend\"></div>{}</body></html>",
        talk.own_html(),
        talk.quoted_html()
    ))
}

fn gmail_fonts(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<div dir=\"ltr\"><div class=\"gmail_default\" style=\"font-family:verdana,sans-serif;font-size:small;color:#073763\"><span style=\"color:rgb(34,34,34);font-variant-ligatures:normal;white-space:pre-wrap;background-image:initial;background-position:initial;background-repeat:initial\">{}</span></div><div class=\"gmail_default\"><br clear=\"all\"></div></div><br>{}",
        talk.own_html(),
        gmail_markup(&Talk { own: "", quoted: talk.quoted, language: talk.language })
    ))
}

fn apple_fonts(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\"></head><body style=\"word-wrap: break-word; -webkit-nbsp-mode: space; -webkit-line-break: after-white-space;\" class=\"\"><span style=\"caret-color: rgb(0, 0, 0); color: rgb(0, 0, 0); font-family: Helvetica; font-size: 12px; font-style: normal; font-variant-caps: normal; font-weight: 400; letter-spacing: normal; orphans: auto; text-align: start; text-indent: 0px; text-transform: none; white-space: normal; widows: auto; word-spacing: 0px; -webkit-tap-highlight-color: rgba(26, 26, 26, 0.3); -webkit-text-size-adjust: auto; -webkit-text-stroke-width: 0px; text-decoration: none; float: none; display: inline !important;\">{}</span><br class=\"Apple-interchange-newline\"><div><blockquote type=\"cite\" class=\"\"><div class=\"\">{}</div></blockquote></div></body></html>",
        talk.own_html(),
        talk.quoted_html()
    ))
}

/// A reply that keeps the style sheet of a mail of ours.
fn apple_our_style(talk: &Talk<'_>) -> Mail {
    let style = ":root{color-scheme:light dark}body{margin:0;padding:16px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}.line{color:#6b7280;font-size:13px;margin:0 0 16px}h1{font-size:20px;line-height:1.3;margin:0 0 16px}.said{border-left:3px solid #9ca3af;padding:2px 0 2px 12px;margin:0}td,th{padding:4px 16px 4px 0;vertical-align:top;text-align:left;font-weight:400}th{color:#6b7280;white-space:nowrap}td{white-space:pre-wrap;word-break:break-word}.go{display:inline-block;min-height:44px;line-height:44px;padding:0 24px;border-radius:6px;background:#1d4ed8;color:#ffffff;text-decoration:none;font-weight:600}";
    Mail::html(&format!(
        "<html><head><meta http-equiv=\"content-type\" content=\"text/html; charset=utf-8\"></head><body dir=\"auto\">{}<div dir=\"ltr\"><br><blockquote type=\"cite\">{}<br></blockquote></div><blockquote type=\"cite\"><div dir=\"ltr\"><meta name=\"color-scheme\" content=\"light dark\"><title>Approve?</title><style>{style}</style><p class=\"line\">{}</p><p><a class=\"go\" href=\"https://acme.example/a/x\">Open the decision page</a></p></div></blockquote></body></html>",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    ))
}

fn android(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"></head><body><div dir=\"auto\" style=\"font-family:sans-serif;font-size:14px;line-height:1.6;\">{}</div><div id=\"composer_signature\" dir=\"auto\"><meta http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"></div><div><br></div><div style=\"font-size:100%;color:#000000\" dir=\"auto\"><!-- originalMessage --><div>-------- {} --------</div><div>{}</div></div>{}</body></html>",
        talk.own_html(),
        talk.language.original,
        talk.headers_html(),
        talk.quoted_html()
    ))
}

fn kmail(talk: &Talk<'_>) -> Mail {
    let own: String = talk
        .own
        .lines()
        .map(|line| format!("<p style=\"-qt-paragraph-type:empty; margin-top:0; margin-bottom:0; margin-left:0; margin-right:0; -qt-block-indent:0; text-indent:0px;\">{line}</p>\n"))
        .collect();
    Mail::html(&format!(
        "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.0//EN\" \"http://www.w3.org/TR/REC-html40/strict.dtd\"><html><head><meta name=\"qrichtext\" content=\"1\" /><style type=\"text/css\">\np, li {{ white-space: pre-wrap; }}\nhr {{ height: 1px; border-width: 0; }}\nli.unchecked::marker {{ content: \"\\2610\"; }}\n</style></head><body style=\" font-family:'Noto Sans'; font-size:10pt; font-weight:400; font-style:normal;\">{own}<br /><blockquote type=\"cite\">{}</blockquote></body></html>",
        talk.quoted_html()
    ))
}

fn outlook_phone(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head></head><body><div dir=\"auto\">{}</div><div id=\"ms-outlook-mobile-signature\"><div style=\"direction: ltr;\">{}</div></div><hr style=\"display:inline-block;width:98%\" tabindex=\"-1\"><div id=\"divRplyFwdMsg\" dir=\"ltr\">{}</div>{}</body></html>",
        talk.own_html(),
        talk.language.phone,
        talk.headers_html(),
        talk.quoted_html()
    ))
}

fn yahoo(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head></head><body><div class=\"ydp1yahoo-style-wrap\" style=\"font-family:Helvetica Neue;font-size:16px;\"><div dir=\"ltr\" data-setdir=\"false\">{}</div><div><br></div></div><div id=\"yahoo_quoted_123\" class=\"yahoo_quoted\"><div style=\"font-family:Helvetica;font-size:13px;color:#26282a;\"><div>{}</div><div><br></div><div>{}</div></div></div></body></html>",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    ))
}

fn proton(talk: &Talk<'_>) -> Mail {
    let html = format!(
        "<div style=\"font-family: Arial, sans-serif; font-size: 14px;\">{}</div><div class=\"protonmail_signature_block\"><div class=\"protonmail_signature_block-proton\">Sent with Proton Mail secure email.</div></div><div class=\"protonmail_quote\">{}<br><blockquote class=\"protonmail_quote\" type=\"cite\">{}</blockquote></div>",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    );
    let plain = format!(
        "{}\n\nSent with Proton Mail secure email.\n\n{}\n\n{}",
        talk.own,
        talk.wrote(),
        talk.marked()
    );
    alternative(&plain, &html)
}

fn stars(talk: &Talk<'_>) -> Mail {
    Mail::plain(&format!("{}\n\n\n{}\n{}", talk.own, talk.headers("*"), talk.lines()))
}

fn gmail_phone(talk: &Talk<'_>) -> Mail {
    let own: String = talk.own_html().replace("<div>", "<div dir=\"auto\">");
    let html = format!(
        "<div dir=\"auto\">{own}</div><br><div class=\"gmail_quote\"><div dir=\"ltr\" class=\"gmail_attr\">{}<br></div><blockquote class=\"gmail_quote\" style=\"margin:0 0 0 .8ex;border-left:1px #ccc solid;padding-left:1ex\">{}</blockquote></div>\n",
        talk.wrote_html(),
        talk.quoted_html()
    );
    alternative(&gmail_text(talk), &html)
}

fn fastmail(talk: &Talk<'_>) -> Mail {
    let html = format!(
        "<!DOCTYPE html><html><head><title></title><style type=\"text/css\">\np.MsoNormal,p.MsoNoSpacing{{margin:0}}\np.MsoNormal,p.MsoNoSpacing{{margin:0}}</style></head><body>{}<div><br></div><div>{}</div><blockquote type=\"cite\" id=\"qt\" style=\"\"><div>{}</div></blockquote><div><br></div></body></html>",
        talk.own_html(),
        talk.wrote_html(),
        talk.quoted_html()
    );
    alternative(&format!("{}\n\n{}\n{}", talk.own, talk.wrote(), talk.marked()), &html)
}

fn gmx(talk: &Talk<'_>) -> Mail {
    Mail::html(&format!(
        "<html><head></head><body><div style=\"font-family: Verdana;font-size: 12.0px;\">{}<div>&nbsp;<div>&nbsp;<div name=\"quote\" style=\"margin:10px 5px 5px 10px; padding: 10px 0 10px 10px; border-left:2px solid #C3D9E5; word-wrap: break-word; -webkit-nbsp-mode: space; -webkit-line-break: after-white-space;\"><div style=\"margin:0 0 10px 0;\">{}</div><div name=\"quoted-content\">{}</div></div></div></div></div></body></html>",
        talk.own_html(),
        talk.headers_html(),
        talk.quoted_html()
    ))
}

fn zoho(talk: &Talk<'_>) -> Mail {
    let rule = format!("---- On Wed, 01 May 2024 10:00:00 +0200 {} <{}> wrote ---", ASKER.0, ASKER.1);
    let html = format!(
        "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\"><html><head><meta content=\"text/html;charset=UTF-8\" http-equiv=\"Content-Type\"></head><body><div style=\"font-family: Verdana, Arial, Helvetica, sans-serif; font-size: 10pt;\">{}<div><br></div><div class=\"zmail_extra_hr\" style=\"border-top: 1px solid rgb(204, 204, 204); height: 0px; margin-top: 10px; margin-bottom: 10px; line-height: 0px;\"><br></div><div class=\"zmail_extra\" data-zbluepencil-ignore=\"true\"><div><br></div><div id=\"Zm-_Id_-Sgn1\">{}</div><div><br></div><blockquote id=\"blockquote_zmail\" style=\"margin: 0px;\"><div>{}</div></blockquote></div></div><br></body></html>",
        talk.own_html(),
        rule.replace('<', "&lt;").replace('>', "&gt;"),
        talk.quoted_html()
    );
    alternative(&format!("{}\n\n\n\n{rule}\n\n{}", talk.own, talk.lines()), &html)
}
