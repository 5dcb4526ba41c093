//! Fonts and colours.

/// The font size of a node's name, pixels.
pub(super) const NAME_PX: i32 = 14;
/// The font size of a node's actions.
pub(super) const MARKS_PX: i32 = 11;
/// The font size of an edge's label.
pub(super) const LABEL_PX: i32 = 12;
/// The font size of the title.
pub(super) const TITLE_PX: i32 = 18;
/// The line height of a label.
pub(super) const LINE_PX: i32 = 16;

/// Every rule begins with the class of the picture, so that none affects a page that embeds it.
pub(super) const STYLE: &str = "\
.switchward-graph text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",sans-serif;fill:#1d2733}
.switchward-graph .page{fill:#ffffff}
.switchward-graph .title{font-size:18px;font-weight:600}
.switchward-graph .n{font-size:14px;font-weight:500;text-anchor:middle}
.switchward-graph .m{font-size:11px;text-anchor:middle;fill:#55657a}
.switchward-graph .e{font-size:12px;fill:#3b4a5c}
.switchward-graph .v rect{fill:#f1f5fa;stroke:#7d8fa8;stroke-width:1.4}
.switchward-graph .start rect{fill:#dce9ff;stroke:#2f6bd0;stroke-width:2.2}
.switchward-graph .good rect{fill:#e0f4e6;stroke:#2c8a4b}
.switchward-graph .bad rect{fill:#fde6e3;stroke:#bf3b2b}
.switchward-graph .gone rect{fill:#eceef0;stroke:#777f88}
.switchward-graph .v .inner{fill:none;stroke-width:1}
.switchward-graph .s{fill:none;stroke:#7d8fa8;stroke-width:1.5}
.switchward-graph .h{fill:#7d8fa8}
.switchward-graph .held .s{stroke:#a86a00;stroke-width:1.8;stroke-dasharray:7 4}
.switchward-graph .held .h{fill:#a86a00}
.switchward-graph .refused .s{stroke:#bf3b2b;stroke-dasharray:2 4}
.switchward-graph .refused .h{fill:#bf3b2b}
.switchward-graph .pale{opacity:0.45}
@media (prefers-color-scheme:dark){
.switchward-graph text{fill:#e7ecf3}
.switchward-graph .page{fill:#14181f}
.switchward-graph .m{fill:#9fb0c5}
.switchward-graph .e{fill:#c3cfdd}
.switchward-graph .v rect{fill:#222a36;stroke:#7388a5}
.switchward-graph .start rect{fill:#1c335c;stroke:#6ea0f5}
.switchward-graph .good rect{fill:#173524;stroke:#55b878}
.switchward-graph .bad rect{fill:#421d19;stroke:#e5776a}
.switchward-graph .gone rect{fill:#2b2f35;stroke:#8f979f}
.switchward-graph .v .inner{fill:none}
.switchward-graph .s{stroke:#7388a5}
.switchward-graph .h{fill:#7388a5}
.switchward-graph .held .s{stroke:#e0a440}
.switchward-graph .held .h{fill:#e0a440}
.switchward-graph .refused .s{stroke:#e5776a}
.switchward-graph .refused .h{fill:#e5776a}
}
";
