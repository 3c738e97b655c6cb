"""The one style sheet of a report, and the policy under which it may be shown: nothing is loaded, nothing runs."""

from __future__ import annotations

import base64
import hashlib

CSS = """
:root{color-scheme:light dark;--page:#f7f7f5;--surface:#fff;--sunken:#efefec;--line:#e1e1dc;--ink:#1b1c1e;
--ink-2:#55585c;
--ink-3:#6c7075;--accent:#2f5f8f;--good:#1d6e2d;--bad:#a5232f;--warn:#855300;--cell:#f1f1ee;--tie:#1b1c1e;
--s0:#c2500a;--s1:#00756b;--s2:#4b3fb0;--s3:#7a5230;--s4:#005f99}
@media screen and (prefers-color-scheme:dark){:root{--page:#141517;--surface:#1c1e21;--sunken:#101113;--line:#31353a;
--ink:#eceded;--ink-2:#a9aeb4;--ink-3:#8d939a;--accent:#8ab4dd;--good:#7fc98d;--bad:#f0929a;--warn:#e3b45e;--cell:#24272b;
--tie:#141517;--s0:#f2924b;--s1:#45c7b8;--s2:#a79bff;--s3:#cfa67e;--s4:#6db9f2}}
*{box-sizing:border-box}
html{background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;
font-variant-numeric:tabular-nums}
body{margin:0 auto;padding:24px 20px 64px;max-width:1000px}
h1{font-size:24px;line-height:1.3;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:0 0 8px}
h3{font-size:15px;margin:0}
section{background:var(--surface);border:1px solid var(--line);border-radius:8px;padding:16px 18px;margin-top:16px}
p,ul{margin:0 0 10px}
ul{padding-left:20px}
p,li,caption{overflow-wrap:anywhere}
td{overflow-wrap:break-word}
nav{display:flex;flex-wrap:wrap;gap:2px 14px;margin:12px 0 0;font-size:13px}
a{color:var(--accent);text-underline-offset:3px;text-decoration-thickness:1px}
code,pre{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9em}
pre{background:var(--sunken);border-radius:5px;padding:12px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}
.frame{overflow-x:auto;margin:0 0 12px}
table{border-collapse:collapse;font-size:13px;width:100%}
caption{text-align:left;color:var(--ink-2);padding:0 0 6px;caption-side:top}
th,td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);min-width:3em}
th{font-weight:600;color:var(--ink-2)}
.n{text-align:right;white-space:nowrap}
td strong{white-space:nowrap}
details{margin:0 0 12px}
summary{cursor:pointer;color:var(--accent);font-size:13px}
figure{margin:0 0 16px}
figcaption p{color:var(--ink-2);font-size:13px;margin:2px 0 8px}
figure svg{display:block}
.better,.within,.supported{color:var(--good)}
.worse,.over{color:var(--bad)}
.id{color:var(--ink-2);text-decoration:none;border-bottom:1px dotted var(--ink-3)}
svg text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
.t{fill:var(--ink)}.q{fill:var(--ink-3)}
svg .b{font-weight:650}
.ground{fill:var(--cell)}
.rule{stroke:var(--line);fill:none}
.zero{stroke:var(--ink-3);fill:none}
.tie{stroke:var(--tie);stroke-width:1.4;fill:none}
.mark{stroke:var(--ink);fill:none}
.ms{fill:var(--ink-3);fill-opacity:.55}
.dot{fill:var(--ink)}
.front{stroke:var(--accent);stroke-dasharray:4 3;fill:none}
.line{fill:none;stroke-width:1.6}
.other{stroke-dasharray:5 3}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}
.f0{fill:var(--s0)}.f1{fill:var(--s1)}.f2{fill:var(--s2)}.f3{fill:var(--s3)}.f4{fill:var(--s4)}
@media print{html{font-size:11px;background:none}body{max-width:none;padding:0}
section{border:0;padding:0;break-inside:auto}figure,tr{break-inside:avoid}figure svg{max-width:100%;height:auto}
details::details-content{content-visibility:visible;display:block}nav{display:none}.frame{overflow:visible}}
"""

_HASH = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy of the page: its own style sheet by hash, and nothing else. `frame-ancestors` and `sandbox`
are for a header alone; a page cannot say them of itself."""
