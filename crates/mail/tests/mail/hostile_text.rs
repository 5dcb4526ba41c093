//! Authenticated messages of the approver with a phrase that they have not written, or that is invisible.

use switchward_expr::ReplyDecision;

use crate::forged::all_phrases;
use crate::harness::{Mail, base64};
use crate::shapes::{LANGUAGES, SHAPES, Talk, alternative};

/// Declarations that hide words.
const HIDING: &[&str] = &[
    "display:none",
    "DISPLAY : NONE !important",
    "display:/**/none",
    "visibility:hidden",
    "visibility: collapse",
    "font-size:0",
    "font-size:0px",
    "font-size:1px",
    "font-size:.01em",
    "font-size:1%",
    "font:0/0 a",
    "font: 0px Arial",
    "opacity:0",
    "opacity:.05",
    "opacity:1%",
    "color:#fff",
    "color:#ffffff",
    "color:white",
    "color:rgb(255,255,255)",
    "color:rgb(254 254 254)",
    "color:rgba(0,0,0,0)",
    "color:#fefefe",
    "color:transparent",
    "color:snow",
    "color:hsl(0,0%,100%)",
    "color:var(--x)",
    "background:#000;color:#000",
    "background-color:black;color:#111111",
    "color:red;background:red",
    "max-height:0;overflow:hidden",
    "height:0;overflow:hidden",
    "width:0px;overflow:hidden",
    "line-height:0",
    "position:absolute;left:-9999px",
    "position:fixed;top:-200px",
    "text-indent:-9999px",
    "margin-left:-5000px",
    "clip:rect(0,0,0,0)",
    "clip-path:inset(50%)",
    "transform:scale(0)",
    "filter:opacity(0)",
    "mso-hide:all",
    "dis\\play:none",
    "d\\69splay:none",
    "-webkit-text-fill-color:transparent",
    "content-visibility:hidden",
    "letter-spacing:-10px",
    "zoom:0",
    "display:none!important",
    "display:none/**/! /**/important",
    "d\\69 splay:none",
    "display:n\\6fne",
    "color:#fff!important;color:#000",
    "color:#000;color:#fff",
    "color:rgb(100%,100%,100%)",
    "color:#000;background:linear-gradient(#000,#000)",
    "font-size:50%;font-size:1px",
    "margin-left:9999px",
    "margin-right:-9999px",
    "margin:0 0 0 9999px",
    "margin-top:9999px",
    "margin:9999px 0 0",
    "margin-left:300em",
    "margin-left:calc(100% + 1px)",
    "margin-left:9999px;margin-left:-9800px",
    "padding-left:9999px",
    "padding:5000pt 0 0",
    "text-indent:9999px",
    "text-indent:200%",
    "text-indent:-40px",
    "margin-left:-45px",
    "margin-left:50px;margin-left:0;text-indent:-50px",
    "list-style:symbols('not')",
    "position:relative;left:9999px",
    "position:relative;left:-9999px",
    "position:relative;top:9999px",
    "position:relative;bottom:300px",
    "position:relative;right:9999px",
    "position:sticky",
    "translate:-9999px",
    "transform:translateX(-9999px)",
    "-webkit-transform:rotateY(90deg)",
    "rotate:y 90deg",
    "scale:0",
    "scale:.01",
    "inset:0 0 0 9999px",
    "offset:path('M 9999 0')",
    "height:1px;overflow:hidden",
    "overflow:hidden;max-height:1px",
    "overflow:clip;height:1pt",
    "width:1px;overflow:hidden",
    "max-width:1px;overflow:hidden;white-space:nowrap",
    "height:20px;overflow:hidden;padding-top:20px",
    "display:flex;flex-direction:column-reverse",
    "display:flex;flex-direction:row-reverse",
    "flex-flow:column wrap-reverse",
    "order:1",
    "direction:rtl",
    "writing-mode:vertical-rl",
    "-ms-writing-mode:tb-rl",
    "grid-row:2",
    "float:right",
    "font-family:Wingdings",
    "font-family:'Webdings'",
    "font-family: Symbol, serif",
    "font-family:Arial,\"Zapf Dingbats\"",
    "font:12px wingdings 2",
    "margin-top:-40px",
    "margin:-40px 0 0",
    "position:relative;top:-20px",
    "position:relative;z-index:-1",
    "outline:40px solid white",
    "content:'no'",
    "list-style-type:'not '",
    "animation:a 1s forwards",
    "mix-blend-mode:screen",
    "-webkit-text-stroke:9px white",
    "-webkit-mask-image:none,url(a.png)",
    "text-decoration:underline;text-decoration-thickness:30px",
    "all:unset",
    "something-new:none",
];

/// Markup that hides words; `@` is the phrase.
const HIDDEN: &[&str] = &[
    "<div hidden>@</div>",
    "<div hidden=until-found>@</div>",
    "<div aria-hidden=true>@</div>",
    "<!-- @ -->",
    "<!--[if mso]>@<![endif]-->",
    "<title>@</title>",
    "<style>@</style>",
    "<script>@</script>",
    "<template>@</template>",
    "<noscript>@</noscript>",
    "<textarea>@</textarea>",
    "<select><option>@</option></select>",
    "<details><summary></summary>@</details>",
    "<svg><text>@</text></svg>",
    "<object>@</object>",
    "<iframe>@</iframe>",
    "<button>@</button>",
    "<video>@</video>",
    "<img alt=\"@\" src=x>",
    "<input value=\"@\">",
    "<div title=\"@\"></div>",
    "<font color=white>@</font>",
    "<font color=#ffffff>@</font>",
    "<table bgcolor=black><tr><td><font color=black>@</font></td></tr></table>",
    "<s>@</s>",
    "<strike>@</strike>",
    "<del>@</del>",
    "<span style=\"text-decoration:line-through\">@</span>",
    "<style>.x{display:none}</style><p class=x>@</p>",
    "<style>#x{font-size:0}</style><p id=x>@</p>",
    "<style>@media all{.x{visibility:hidden}}</style><p class=\"a x\">@</p>",
    "<style>i{opacity:0}</style><i>@</i>",
    "<style>*{display:none}</style>@",
    "<style>[x]{display:none}</style><p x>@</p>",
    "<style>.x{color:#fff}</style><p class=x>@</p>",
    "<div style=\"display:none\"><p>@</p></div>",
    "<div><b style=\"display:none\">x</div>@",
    "<div style=\"display:none\"><table></div>@",
    "<blockquote>@</blockquote>",
    "<div class=gmail_quote>@</div>",
    "<div class=\"moz-cite-prefix\">On 1 May 2024 X wrote:</div><blockquote>@</blockquote>",
    "<div id=appendonsend></div>@",
    "<div id=x_divRplyFwdMsg></div>@",
    "<hr tabindex=-1>@",
    "<div style=\"border:none;border-top:solid #E1E1E1 1.0pt\">From: x</div>@",
    "<div class=gmail_signature>@</div>",
    "<div class=moz-signature>@</div>",
    "<bdo dir=rtl><span style=\"unicode-bidi:bidi-override\">@</span></bdo>",
    "<bdo dir=rtl>@</bdo>",
    "<p popover>@</p>",
    "<table><tr><td style=\"display:none\">@</table>",
    "<b style=\"display:none\"><p>@</b></p>",
    "<font color=ffffff>@</font>",
    "<table bgcolor=000000><tr><td>@</td></tr></table>",
    "<table background=a.png><tr><td>@</td></tr></table>",
    "<body link=white><a href=x>@</a>",
    "<body><p>@</p><body style=\"display:none\">",
    "<font face=Wingdings>@</font>",
    "<div style=\"background:#000\"><p style=\"color:initial\">@</p></div>",
    "<div style=\"opacity:.4\"><p style=\"opacity:.4\">@</p></div>",
    "<div style=\"font-size:40%\"><p style=\"font-size:40%\">@</p></div>",
    "<div style=\"margin-left:300px\"><p style=\"margin-left:300px\">@</p></div>",
    "<div style=\"position:relative;top:9px\"><p style=\"position:relative;top:9px\">@</p></div>",
    "<style>p.x{display:none}</style><p class=X>@</p>",
    "<style>.a .x{display:none}</style><div class=a><p class=x>@</p></div>",
    "<style>.a>p{display:none}</style><div class=a><p>@</p></div>",
    "<style>p:first-child{display:none}</style><p>@</p>",
    "<style>.x,::-other{color:#000}</style><font color=white><p class=x>@</p></font>",
    "<style>.x{.y &{display:none}}</style><p class=x>@</p>",
    "<style>.\\78{display:none}</style><p class=x>@</p>",
    "<style>.x{display:/**/none ! important}</style><p class=x>@</p>",
    "<style>.x{background:#000}</style><p class=x>@</p>",
    "<style>.x{margin-left:9999px}</style><p class=x>@</p>",
    "<style>.x{font-family:Webdings}</style><p class=x>@</p>",
    "<style><!-- .x{display:none} --></style><p class=x>@</p>",
    "<svg><style>.x{display:none}</style></svg><p class=x>@</p>",
    "<style>@media screen{.x{display:none}}</style><p class=x>@</p>",
    "<style>@media(min-width:1px){p{display:none}}</style><p>@</p>",
    "<style>@media print,screen{p{font-size:0}}</style><p>@</p>",
    "<style media=\"(min-width:1px)\">p{display:none}</style><p>@</p>",
    "<style>@supports(color:red){p{display:none}}</style><p>@</p>",
    "<style>@layer a{p{display:none}}</style><p>@</p>",
    "<style>@media(a){.x{background:#000}}</style><p class=x>@</p>",
    "<style>@import url(a.css);</style><p>@</p>",
    "<style>@import 'a.css'",
    "<style>@import 'a.css' screen;</style>@",
    "<style>@font-face{font-family:Arial;src:url(a.woff)}</style><p>@</p>",
    "<link rel=stylesheet href=a.css><p>@</p>",
    "<p>@</p><link rel=\"a STYLESHEET\" href=a.css>",
    "<style>p::before{content:'do not '}</style><p>@</p>",
    "<style>p:after{content:' is wrong'}</style><p>@</p>",
    "<style>.x{content:'no'}</style><p class=x>@</p>",
    "<style>q{quotes:'do not ' ''}</style><q>@</q>",
    "<style>p:before{margin-top:-30px;display:block;background:#fff}</style><p>@</p>",
    "<style>p::first-letter{font-size:0}</style><p>@</p>",
    "<style>div{display:flex;flex-direction:column-reverse}</style><div><p>@</p><p>is wrong</p></div>",
    "<div style=\"display:flex;flex-direction:column-reverse\"><p>@</p><p>No:</p></div>",
    "<div style=\"display:flex\"><p style=\"order:2\">@</p><p>Not</p></div>",
    "<div style=\"direction:rtl\"><span>@</span> <span>not</span></div>",
    "<div style=\"writing-mode:vertical-rl\"><p>@</p><p>Not</p></div>",
    "<p>@</p><p style=\"margin-top:-40px;background:#fff\">What?</p>",
    "<p>@</p><p style=\"position:relative;top:-40px;background:#fff\">What?</p>",
    "<p>@</p><div style=\"margin-bottom:-40px\">What?</div>",
    "<p>@</p><p style=\"box-shadow:0 -40px 0 40px #fff\">What?</p>",
    "<table><tr><td>@</td></tr><thead><tr><td>Do not say</td></tr></thead></table>",
    "<table><tr><td>@</td></tr><caption>Do not say</caption></table>",
    "<table><caption style=\"caption-side:bottom\">@</caption><tr><td>Do not say</td></tr></table>",
    "<table><tfoot><tr><td>@</td></tr></tfoot><tr><td>Do not say</td></tr></table>",
    "<div style=\"display:table\"><div style=\"display:table-footer-group\">@</div><p>Not</p></div>",
    "<fieldset>@<legend>Do not say</legend></fieldset>",
    "<table><col style=\"background:#000\"><tr><td>@</td></tr></table>",
    "<table><col style=\"visibility:collapse\"><tr><td>@</td></tr></table>",
    "<div style=\"background:#000;color:#fff\"><p bgcolor=white style=\"color:#000\">@</p></div>",
    "<style>@counter-style x{system:cyclic;symbols:'do not '}</style><li style=\"list-style:x\">@</li>",
    "<template shadowrootmode=open>@</template>",
    "<div><template shadowrootmode=open>Not that</template>@</div>",
    "<noscript></div></noscript>@",
];

/// Markup in which something is seen beside the phrase that changes what it says; `@` is the phrase.
const BESIDE: &[&str] = &[
    "<svg><text>Not</text></svg> @",
    "<span style=\"color:hsl(0,50%,50%)\">Not</span> @",
    "<span style=\"position:relative;left:500px\">Not</span> @",
    "<span style=\"transform:rotate(2deg)\">Not</span> @",
    "<span hidden style=\"display:inline\">Not</span> @",
    "<style>i{display:none}</style><i style=\"display:inline\">Not</i> @",
    "<textarea>Not</textarea> @",
    "<button>Not</button> @",
    "@<details><summary>is wrong</summary></details>",
    "<q>@</q>",
    "@<span style=\"display:none\">x</span> is wrong",
    "@<div style=\"display:none\">x</div> is wrong",
    "@<div style=\"position:absolute\">x</div> is wrong",
    "@<x-y> is wrong</x-y>",
    "@<br style=\"display:none\"> is wrong",
    "<style>br{display:none}</style>@<br> is wrong",
    "<pre style=\"white-space:normal\">@\nis wrong</pre>",
    "<style>pre{white-space:normal}</style><pre>@\nis wrong</pre>",
    "<p style=\"display:inline\">@</p><p style=\"display:inline\">is wrong</p>",
    "<style>p{display:inline}</style><p>@</p><p>is wrong</p>",
    "<style>@media(a){p{display:inline}}</style><p>@</p><p>is wrong</p>",
    "<div style=\"display:flex\"><div>@</div><div>is wrong</div></div>",
    "<div style=\"display:grid\"><div>@</div><div>is wrong</div></div>",
    "<div style=\"display:table-cell\">@</div><div style=\"display:table-cell\">is wrong</div>",
    "<div style=\"float:left\">@</div><p>is wrong</p>",
    "<table align=left><tr><td>@</td></tr></table>is wrong",
    "<select><option>No</option></select>@",
];

/// Bodies of plain text; `@` is the phrase.
const PLAIN: &[&str] = &[
    "> @\n",
    ">@\n",
    ">> @\n",
    " > @\n",
    "> Shall we say no more than one word, and\n@\n> or another\n",
    "What is this?\n\n> @\n",
    "On Wed, 1 May 2024 Acme <a@acme.example> wrote:\n\n@\n",
    "On Wed, 1 May 2024 Acme\n<a@acme.example> wrote:\n@\n",
    "-----Original Message-----\n@\n",
    "----- Weitergeleitete Nachricht -----\n\n@\n",
    "________________________________\n@\n",
    "From: a\nSent: b\nTo: c\nSubject: d\n\n@\n",
    "*From:* a\n*Date:* b\n*Subject:* d\n\n@\n",
    "Von: a\nGesendet: b\nAn: c\nBetreff: d\n\n@\n",
    "Date: b\nTo: c\nSubject: d\n\n@\n",
    "--- reply above this line ---\n@\n",
    "-- \n@\n",
    "--\n@\n",
    "\n\n-- \n@\n",
    "Sent from my iPhone\n@\n",
    "Von meinem iPhone gesendet\n\n@\n",
    "Get Outlook for iOS\n@\n",
    "Begin forwarded message:\n\n@\n",
    "Begin forwarded message:\n\n> From: x\n> Subject: y\n>\n> @\n",
    "Hi, should I say it?\n@\n",
    "I do not think so.\n\n@\n",
    "\"@\"\n",
    "not @\n",
    "@?\n",
    "@ - not\n",
    "@ is what I will not say\n",
    "@\u{2028}is what I will not say\n",
    "@\u{b}not\n",
    "@\rnot\n",
    "[@]\n",
    "Subject: @\n",
    "2024-05-01 10:00 GMT+02:00 Acme <a@acme.example>:\n\n@\n",
    "a@acme.example wrote:\n@\n",
    "Am 01.05.2024 um 10:00 schrieb Acme:\n@\n",
    "-----BEGIN PGP MESSAGE-----\n\n@\n",
    "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n> @\n-----BEGIN PGP SIGNATURE-----\n",
    "****************\n@\n",
    "================\n@\n",
    "Le mer. 1 mai 2024 \u{e0} 10:00, Acme <a@acme.example> a\n\u{e9}crit :\n@\n",
];

/// A character of another script that looks the same.
fn lookalike(c: char) -> Option<char> {
    let pairs = [
        ('a', 'а'),
        ('e', 'е'),
        ('o', 'о'),
        ('p', 'р'),
        ('c', 'с'),
        ('y', 'у'),
        ('k', 'к'),
        ('n', 'ո'),
        ('g', 'ɡ'),
        ('l', 'ӏ'),
        ('j', 'ј'),
        ('d', 'ԁ'),
        ('s', 'ѕ'),
        ('i', 'і'),
    ];
    pairs.iter().find(|(known, _)| *known == c).map(|(_, other)| *other)
}

/// Phrases with a lookalike character, or with an invisible one.
fn disguised(phrase: &str) -> Vec<String> {
    let chars: Vec<char> = phrase.chars().collect();
    let mut all = Vec::new();
    for at in 0..chars.len() {
        let put = |c: char| chars[..at].iter().chain([&c]).chain(&chars[at + 1..]).collect::<String>();
        all.extend(lookalike(chars[at]).map(put));
        if at > 0 {
            for sign in
                ['\u{200b}', '\u{200d}', '\u{ad}', '\u{feff}', '\u{2060}', '\u{202e}', '\u{2066}', '\u{200f}']
            {
                all.push(chars[..at].iter().chain([&sign]).chain(&chars[at..]).collect());
            }
        }
    }
    all.push(format!("\u{202e}{phrase}"));
    all.push(format!("\u{202e}{}", phrase.chars().rev().collect::<String>()));
    all
}

/// A message of parts, of which the first is asked something.
fn parts(kind: &str, parts: &[(&str, &str)]) -> Mail {
    let parts: String = parts.iter().map(|(headers, text)| format!("--b\n{headers}\n\n{text}\n")).collect();
    Mail::new(&format!("multipart/{kind}; boundary=b"), &format!("{parts}--b--\n"))
}

/// Parts that are not what was written.
fn attached(phrase: &str) -> Vec<Mail> {
    let plain = "Content-Type: text/plain; charset=utf-8";
    let question = (plain, "What is this?");
    let coded = base64(phrase.as_bytes());
    let latin = |charset: &str| format!("Content-Type: text/plain; charset={charset}");
    let utf16: Vec<u8> = phrase.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        parts(
            "mixed",
            &[
                question,
                ("Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt", phrase),
            ],
        ),
        parts("mixed", &[("Content-Type: text/plain\nContent-Disposition: attachment", phrase)]),
        parts("mixed", &[(plain, ""), (plain, phrase)]),
        parts(
            "mixed",
            &[question, ("Content-Type: message/rfc822", &format!("From: dana@corp.example\n\n{phrase}"))],
        ),
        parts("mixed", &[("Content-Type: message/rfc822", &format!("From: dana@corp.example\n\n{phrase}"))]),
        parts("mixed", &[("Content-Type: text/calendar", phrase)]),
        parts("mixed", &[("Content-Type: text/x-other", phrase)]),
        parts("mixed", &[("Content-Type: application/octet-stream", phrase)]),
        parts("encrypted", &[("Content-Type: application/pgp-encrypted", "Version: 1"), (plain, phrase)]),
        parts("alternative", &[question, ("Content-Type: text/html", phrase)]),
        parts("related", &[("Content-Type: text/html", "<p>What is this?</p>"), (plain, phrase)]),
        parts("mixed", &[(&latin("x-unknown-9"), phrase)]),
        parts("mixed", &[("Content-Type: text/plain\nContent-Transfer-Encoding: base64", phrase)]),
        parts(
            "mixed",
            &[("Content-Type: text/plain; charset=utf-16le\nContent-Transfer-Encoding: base64", &coded)],
        ),
        parts(
            "mixed",
            &[(
                "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64",
                &base64(&utf16),
            )],
        ),
        parts("mixed", &[("Content-Type: text/plain; charset=utf-7", phrase)]),
        parts("mixed", &[("Content-Type: text/plain\nContent-Transfer-Encoding: x-uuencode", phrase)]),
        parts(
            "alternative",
            &[(plain, phrase), ("Content-Type: text/html", &format!("<p>{phrase} nothing</p>"))],
        ),
        Mail::new(
            "multipart/related; start=\"<b@x>\"; boundary=b",
            &format!(
                "--b\n{plain}\nContent-ID: <a@x>\n\n{phrase}\n--b\n{plain}\nContent-ID: <b@x>\n\nWhat?\n--b--\n"
            ),
        ),
        Mail::new(
            "multipart/mixed; boundary=b",
            &format!("Not so, says a multipart mime.\n--b\n{plain}\n\n{phrase}\n--b--\n"),
        ),
        parts("mixed", &[("Content-Type: application/ms-tnef; name=winmail.dat", phrase)]),
        Mail::new("application/pkcs7-mime; smime-type=enveloped-data", phrase),
        Mail::new("application/pdf", phrase),
        Mail::new("multipart/mixed; boundary=b", phrase),
        Mail::new(
            "multipart/mixed; boundary=b",
            &format!("{phrase}\n--b\n{plain}\n\nWhat?\n--b--\n{phrase}\n"),
        ),
        Mail::plain("").set("Subject", phrase),
        Mail::plain("\n\n").set("Subject", phrase),
        Mail::plain("What is this?\n").set("Subject", phrase).set("Keywords", phrase).set("Comments", phrase),
        Mail::plain("What is this?\n").set("From", &format!("{phrase} <dana@corp.example>")),
    ]
}

/// Markup with the phrase in place of `@`, except where this begins a CSS rule.
fn with(form: &str, phrase: &str) -> String {
    let rules = ["@media", "@import", "@supports", "@layer", "@font-face"];
    let kept =
        rules.iter().fold(form.to_owned(), |form, rule| form.replace(rule, &rule.replace('@', "\u{1}")));
    kept.replace('@', phrase).replace('\u{1}', "@")
}

/// Every message of this page for one phrase, with a name.
fn all(phrase: &'static str, at: usize) -> Vec<(String, Mail)> {
    let mut mails = Vec::new();
    for style in HIDING {
        for (shown, begins, ends) in [
            ("", "<div", "</div>"),
            ("<p>What is this?</p>", "<span", "</span>"),
            ("<p>What is this?</p>", "<table><tr><td", "</td></tr></table>"),
        ] {
            let style = style.replace('"', "&quot;");
            let hidden = format!("{begins} style=\"{style}\">{phrase}{ends}{shown}");
            mails.push((format!("hidden {begins} {style}"), Mail::html(&hidden)));
            mails.push((format!("alternative, hidden {begins} {style}"), alternative("\n", &hidden)));
        }
    }
    for form in HIDDEN.iter().chain(BESIDE) {
        for behind in ["", "<p>What is this?</p>"] {
            let html = format!("{}{behind}", with(form, phrase));
            mails.push((format!("hidden {form}"), Mail::html(&html)));
        }
    }
    for form in PLAIN {
        let address = form.replace("@acme", "\u{1}acme").replace('@', phrase).replace('\u{1}', "@");
        mails.push((format!("plain {form:?}"), Mail::plain(&address)));
    }
    for word in disguised(phrase) {
        mails.push((format!("disguised {word:?}"), Mail::plain(&format!("{word}\n"))));
        mails.push((format!("disguised {word:?}, html"), Mail::html(&format!("<p>{word}</p>"))));
    }
    mails.extend(attached(phrase).into_iter().enumerate().map(|(n, mail)| (format!("part {n}"), mail)));
    let quoted = vec![phrase.to_owned(), String::new(), phrase.to_owned()];
    for (n, shape) in SHAPES.iter().enumerate() {
        for (own, step) in [("", 0), ("What is this about?", 7)] {
            let language = &LANGUAGES[(at + n + step) % LANGUAGES.len()];
            let mail = (shape.mail)(&Talk { own, quoted: &quoted, language });
            mails.push((format!("{} {} {own:?}", shape.name, language.name), mail));
        }
    }
    mails
}

#[tokio::test]
async fn nothing_that_the_approver_has_not_written_in_sight_decides() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (at, phrase) in all_phrases().enumerate() {
        for (name, mail) in all(phrase, at) {
            let sorted = mail.genuine().seen().await;
            count += 1;
            if sorted.decides() != ReplyDecision::Undecided {
                wrong.push(format!("{name} {phrase:?}: {sorted:?}"));
            }
        }
    }
    println!("{count} messages without words of the sender, {} of them decide", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 10_000, "{count}");
}
