/* Small pieces of SVG: styles, numbers, lines of text. */
#include "view/parts.h"

#include <stdio.h>
#include <string.h>

/* Where a colour goes: plain rules that every renderer knows, since few outside browsers know var(). For a dark screen
 * the same rules come again, with other colours, where @media is known. */
enum { PAPER, INK, DIM, RIM, NODE, FRAME, TIGHT, CLASS, PART = CLASS + N_LINK_CLASSES, N_COLOURS = PART + SVG_PARTS };

static const char *const colours[2][N_COLOURS] = {
	{ "#ffffff", "#1b2530", "#5a6672", "#33414f", "#ffffff", "#f3f5f7", "#c81e3a",
	  [CLASS + LINK_NVLINK] = "#2e8b3d", [CLASS + LINK_XGMI] = "#c2410c", [CLASS + LINK_C2C] = "#0e7490",
	  [CLASS + LINK_PCIE] = "#b7791f", [CLASS + LINK_QPI] = "#7c3aed", [CLASS + LINK_NET] = "#2563eb",
	  [PART] = "#fde2c4", "#cfe4fb", "#d9f0d3", "#eadcf8", "#fbd7e1", "#f3eeb8" },
	{ "#12171d", "#e6ebf0", "#9aa7b4", "#b9c5d1", "#222b35", "#1a2129", "#ff6b81",
	  [CLASS + LINK_NVLINK] = "#5cc26b", [CLASS + LINK_XGMI] = "#f4814d", [CLASS + LINK_C2C] = "#4cc3dd",
	  [CLASS + LINK_PCIE] = "#e0ab4a", [CLASS + LINK_QPI] = "#b394ff", [CLASS + LINK_NET] = "#6ea3ff",
	  [PART] = "#5a3d1e", "#1e4062", "#28502a", "#45306b", "#642c40", "#56511a" },
};

static void
put_colours(Text *out, const char *const *colour)
{
	text_printf(out, ".paper { fill: %s } text { fill: %s } .note, .count { fill: %s }\n", colour[PAPER],
	    colour[INK], colour[DIM]);
	text_printf(out, ".gpu circle, .box { fill: %s; stroke: %s } .behind { stroke: %s } ", colour[NODE],
	    colour[RIM], colour[RIM]);
	text_printf(out, ".frame { fill: %s; stroke: %s } ", colour[FRAME], colour[DIM]);
	text_printf(out, ".plate { fill: %s } .tick { stroke: %s }\n", colour[PAPER], colour[TIGHT]);
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		const char *name = link_class_name((LinkClass)c);
		text_printf(out, ".c-%s { stroke: %s } ", name, colour[CLASS + c]);
		text_printf(out, ".head.c-%s { fill: %s }\n", name, colour[CLASS + c]);
	}
	for (int p = 0; p < SVG_PARTS; p++)
		text_printf(out, ".gpu.p%d circle, .p%d .box { fill: %s }\n", p, p, colour[PART + p]);
}

void
svg_style(Text *out)
{
	text_put(out,
	    "<style>\n"
	    "svg { color-scheme: light dark; font-family: system-ui, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, "
	    "sans-serif }\n"
	    "text { font-size: 13px }\n"
	    ".title { font-size: 20px; font-weight: 600 } .name { font-weight: 600 } "
	    ".note, .count { font-size: 12px }\n"
	    ".mid, .num { text-anchor: middle } .num { font-weight: 600 } .s1 { font-size: 11px } .s2 { "
	    "font-size: 9.5px } .s3 { font-size: 8px }\n"
	    ".gpu circle { stroke-width: 1.5 } .root circle { stroke-width: 3.5 } .frame { stroke-opacity: .4 }\n"
	    ".lane { fill: none; opacity: .28 } .load, .edge, .tick, .behind { fill: none } .edge { stroke-width: 2 } "
	    ".tick { stroke-width: 2.5 }\n");
	put_colours(out, colours[0]);
	for (int c = 0; c < N_LINK_CLASSES; c++)
		text_printf(out, ".head.c-%s { stroke: none }\n", link_class_name((LinkClass)c));
	text_put(out, "@media screen and (prefers-color-scheme: dark) {\n");
	put_colours(out, colours[1]);
	text_put(out, "}\n</style>\n");
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
