package apidoc

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

//go:embed assets/page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// pageView is what the template shows.
type pageView struct {
	Title, Version, Summary string
	Intro                   template.HTML
	Headings                []heading
	Auth                    template.HTML
	Scopes                  ordered[string]
	Groups                  []group
	Otherwise               template.HTML
	OtherwiseResponses      []responseView
	Schemas                 []schemaView
	Problems                []problemView
}

type heading struct{ ID, Title string }

type group struct {
	ID, Name   string
	Text       template.HTML
	Operations []operationView
}

type operationView struct {
	ID, Method, Path, Summary string
	Text                      template.HTML
	Scopes                    []string
	Open                      bool // needs no key
	Parameters                []row
	Body                      template.HTML // what the request's body is
	Curl                      string
	Responses                 []responseView
}

type responseView struct {
	Status, Words string
	Text          template.HTML
	Headers       []row
	Type          template.HTML
	Codes         []string
	Example       string
}

type schemaView struct {
	Name, Title string
	Text        template.HTML
	Members     []row
	Words       []wordView
	Example     string
}

type wordView struct{ Word, Meaning string }

type problemView struct {
	problem
	MeaningHTML, RemedyHTML template.HTML
	Example                 string
}

// render makes the page.
func render(doc *document) ([]byte, error) {
	view := pageView{Title: doc.Info.Title, Version: doc.Info.Version, Summary: doc.Info.Summary, Intro: formatted(doc.Info.Description)}
	for _, title := range headings(doc.Info.Description) {
		view.Headings = append(view.Headings, heading{anchor(title), title})
	}
	for _, scheme := range doc.Components.SecuritySchemes {
		view.Auth, view.Scopes = formatted(scheme.Value.Description), scheme.Value.Scopes
	}
	for _, tag := range doc.Tags {
		g := group{ID: anchor(tag.Name), Name: tag.Name, Text: formatted(tag.Description)}
		for _, path := range doc.Paths {
			for _, op := range path.Value {
				if len(op.Value.Tags) > 0 && op.Value.Tags[0] == tag.Name {
					g.Operations = append(g.Operations, viewOperation(strings.ToUpper(op.Name), path.Name, op.Value))
				}
			}
		}
		view.Groups = append(view.Groups, g)
	}
	for _, schema := range doc.Components.Schemas {
		s := schemaView{Name: schema.Name, Title: schema.Value.Title, Text: formatted(schema.Value.Description), Members: members(schema.Value)}
		for _, word := range schema.Value.EnumDescriptions {
			s.Words = append(s.Words, wordView{word.Name, word.Value})
		}
		view.Schemas = append(view.Schemas, s)
	}
	view.Otherwise = formatted(doc.Otherwise.Description)
	for _, r := range doc.Otherwise.Responses {
		view.OtherwiseResponses = append(view.OtherwiseResponses, viewResponse(r.Name, r.Value))
	}
	samples := doc.problemExamples()
	for _, p := range doc.Problems {
		view.Problems = append(view.Problems, problemView{p, inline(p.Meaning), inline(p.Remedy), samples[p.Code]})
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, view)
	return out.Bytes(), err
}

func viewOperation(method, path string, op operation) operationView {
	v := operationView{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Text: formatted(op.Description), Open: len(op.Security) == 0}
	for _, need := range op.Security {
		for _, scopes := range need {
			v.Scopes = append(v.Scopes, scopes...)
		}
	}
	v.Curl = curl(method, path, op, !v.Open)
	for _, p := range op.Parameters {
		v.Parameters = append(v.Parameters, parameterRow(p))
	}
	if op.RequestBody != nil {
		for _, m := range op.RequestBody.Content {
			v.Body = m.Value.Schema.typeText()
		}
	}
	for _, r := range op.Responses {
		v.Responses = append(v.Responses, viewResponse(r.Name, r.Value))
	}
	return v
}

func viewResponse(status string, r response) responseView {
	v := responseView{Status: status, Text: inline(r.Description)}
	if code, err := strconv.Atoi(status); err == nil {
		v.Words = http.StatusText(code)
	}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, headerRow(h.Name, h.Value))
	}
	for _, m := range r.Content {
		v.Codes = m.Value.Schema.codes()
		if len(v.Codes) > 0 {
			break // every refusal is a Problem; its codes say more
		}
		v.Type = m.Value.Schema.typeText()
		if len(m.Value.Examples) > 0 {
			v.Example = indented(m.Value.Examples[0].Value.Value)
		}
	}
	return v
}

// problemExamples are the examples of the refusals, by code.
func (d *document) problemExamples() map[string]string {
	found := map[string]string{}
	for _, r := range d.Components.Responses {
		for _, m := range r.Value.Content {
			for _, e := range m.Value.Examples {
				found[e.Name] = indented(e.Value.Value)
			}
		}
	}
	return found
}

// indented writes a value of the document as it stands there, however deep.
func indented(value jsontext.Value) string {
	if plain, err := jsontext.AppendUnquote(nil, value); err == nil {
		return string(plain)
	}
	value = value.Clone()
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return err.Error() // it was read as a part of valid JSON
	}
	return string(value)
}
