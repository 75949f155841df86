package apidoc

import (
	"html/template"
	"strings"
)

// formatted turns the few forms of CommonMark that the document's texts use into HTML: paragraphs, ## headings, lists with "- ", fenced
// blocks and `code`. Everything else stays text.
func formatted(text string) template.HTML {
	var out strings.Builder
	blocks := strings.Split(strings.TrimSpace(text), "\n\n")
	for i := 0; i < len(blocks); i++ {
		block := strings.TrimRight(blocks[i], "\n")
		switch {
		case strings.HasPrefix(block, "```"):
			for !strings.HasSuffix(block, "\n```") && i+1 < len(blocks) { // a blank line within the fence
				i++
				block += "\n\n" + strings.TrimRight(blocks[i], "\n")
			}
			_, code, _ := strings.Cut(block, "\n")
			out.WriteString("<pre tabindex=\"0\"><code>" + template.HTMLEscapeString(strings.TrimSuffix(code, "\n```")) + "</code></pre>")
		case strings.HasPrefix(block, "## "):
			title := block[len("## "):]
			out.WriteString(`<h3 id="` + anchor(title) + `">` + template.HTMLEscapeString(title) + "</h3>")
		case strings.HasPrefix(block, "- "):
			out.WriteString("<ul>")
			for item := range strings.SplitSeq(block[len("- "):], "\n- ") {
				out.WriteString("<li>" + string(inline(item)) + "</li>")
			}
			out.WriteString("</ul>")
		case block != "":
			out.WriteString("<p>" + string(inline(block)) + "</p>")
		}
	}
	return template.HTML(out.String()) // every text was escaped above
}

// inline turns `code` into HTML and escapes the rest. A backtick without a second one is text.
func inline(text string) template.HTML {
	parts := strings.Split(text, "`")
	var out strings.Builder
	for i, part := range parts {
		escaped := template.HTMLEscapeString(part)
		switch {
		case i%2 == 0:
			out.WriteString(escaped)
		case i == len(parts)-1:
			out.WriteString("`" + escaped)
		default:
			out.WriteString("<code>" + escaped + "</code>")
		}
	}
	return template.HTML(out.String()) // every text was escaped above
}

// anchor is the id of a heading: its letters and digits, with a dash for whatever else.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(title))
}

// headings lists the titles of the ## headings of a text.
func headings(text string) []string {
	var titles []string
	for line := range strings.SplitSeq(text, "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			titles = append(titles, title)
		}
	}
	return titles
}
