/* Small pieces of SVG: styles, numbers, lines of text. */
#include "view/parts.h"

#include <stdio.h>
#include <string.h>

void
svg_style(Text *out)
{
	text_put(out,
	    "<style>\n"
	    ":root { color-scheme: light dark }\n"
	    "svg { --paper: #ffffff; --ink: #1b2530; --dim: #5a6672; --rim: #33414f; --node: #ffffff; "
	    "--frame: #f3f5f7; --tight: #c81e3a;\n"
	    "  --nvlink: #2e8b3d; --xgmi: #c2410c; --c2c: #0e7490; --pcie: #b7791f; --qpi: #7c3aed; --net: #2563eb;\n"
	    "  --p0: #fde2c4; --p1: #cfe4fb; --p2: #d9f0d3; --p3: #eadcf8; --p4: #fbd7e1; --p5: #f3eeb8;\n"
	    "  background: var(--paper); font-family: system-ui, \"Segoe UI\", Roboto, \"Helvetica Neue\", "
	    "Arial, sans-serif }\n"
	    "@media screen and (prefers-color-scheme: dark) {\n"
	    "  svg { --paper: #12171d; --ink: #e6ebf0; --dim: #9aa7b4; --rim: #b9c5d1; --node: #222b35; "
	    "--frame: #1a2129; --tight: #ff6b81;\n"
	    "    --nvlink: #5cc26b; --xgmi: #f4814d; --c2c: #4cc3dd; --pcie: #e0ab4a; --qpi: #b394ff; --net: #6ea3ff;\n"
	    "    --p0: #5a3d1e; --p1: #1e4062; --p2: #28502a; --p3: #45306b; --p4: #642c40; --p5: #56511a }\n"
	    "}\n"
	    "text { fill: var(--ink); font-size: 13px }\n"
	    ".title { font-size: 20px; font-weight: 600 } .name { font-weight: 600 } .note, .count { fill: var(--dim); "
	    "font-size: 12px }\n"
	    ".mid, .num { text-anchor: middle } .num { font-weight: 600 } .s1 { font-size: 11px } .s2 { "
	    "font-size: 9.5px } .s3 { font-size: 8px }\n"
	    ".gpu circle { fill: var(--node); stroke: var(--rim); stroke-width: 1.5 } .root circle { "
	    "stroke-width: 3.5 }\n"
	    ".box { fill: var(--node); stroke: var(--rim) } .frame { fill: var(--frame); stroke: var(--dim); "
	    "stroke-opacity: .4 }\n"
	    ".lane { fill: none; opacity: .28 } .load, .edge { fill: none } .edge { stroke-width: 2 }\n"
	    ".tick { stroke: var(--tight); stroke-width: 2.5; fill: none }\n");
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		text_printf(out, ".c-%s { stroke: var(--%s) } ", link_class_name((LinkClass)c),
		    link_class_name((LinkClass)c));
		text_printf(out, ".head.c-%s { fill: var(--%s); stroke: none }\n", link_class_name((LinkClass)c),
		    link_class_name((LinkClass)c));
	}
	for (int p = 0; p < SVG_PARTS; p++)
		text_printf(out, ".gpu.p%d circle, .p%d .box { fill: var(--p%d) }\n", p, p, p);
	text_put(out, "</style>\n");
}

void
svg_number(Text *out, double value)
{
	char digits[32];
	snprintf(digits, sizeof digits, "%.1f", value);
	text_put(out, strcmp(digits, "-0.0") == 0 ? "0.0" : digits);
}

void
svg_pair(Text *out, const char *a, double x, const char *b, double y)
{
	text_put(out, a);
	svg_number(out, x);
	text_put(out, b);
	svg_number(out, y);
}

void
svg_text(Text *out, const char *class, double x, double y, const char *text)
{
	text_printf(out, "<text class=\"%s\" ", class);
	svg_pair(out, "x=\"", x, "\" y=\"", y);
	text_put(out, "\">");
	text_xml(out, text);
	text_put(out, "</text>\n");
}

double
svg_wrapped(Text *out, const char *class, double x, double y, double height, const char *text)
{
	while (*text) {
		char line[4 * SVG_COLUMNS + 1];
		size_t n = 0, blank = 0;
		int columns = 0;
		for (; text[n] && columns < SVG_COLUMNS; columns++) {
			if (text[n] == ' ')
				blank = n;
			n++;
			while (((unsigned char)text[n] & 0xc0) == 0x80)
				n++;
		}
		if (text[n] && blank > 0)
			n = blank;
		snprintf(line, sizeof line, "%.*s", (int)n, text);
		svg_text(out, class, x, y, line);
		y += height;
		text += n + (text[n] == ' ');
	}
	return y;
}
