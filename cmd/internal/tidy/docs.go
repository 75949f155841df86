package tidy

import (
	"go/ast"
	"go/token"
	"strings"
)

// Docs checks that every package has a doc comment, and outside cmd and tests every exported name.
func Docs(sources []*Source) []Finding {
	var found []Finding
	first := map[string]*Source{} // of each folder
	documented := map[string]bool{}
	for _, s := range sources {
		if s.Test() {
			continue
		}
		dir := s.Dir()
		if first[dir] == nil {
			first[dir] = s
		}
		documented[dir] = documented[dir] || says(s.AST.Doc)
		if !s.Generated() && !within(dir, "cmd/...") {
			found = append(found, undocumented(s)...)
		}
	}
	for dir, s := range first {
		if !documented[dir] {
			found = append(found, s.finding(s.AST.Package, "package %s has no doc comment; say in one of its files what it is for", s.AST.Name.Name))
		}
	}
	return found
}

func undocumented(s *Source) (found []Finding) {
	report := func(name *ast.Ident) {
		found = append(found, s.finding(name.Pos(), "exported %s has no doc comment; say what it is, with units, shape and errors", name.Name))
	}
	for _, decl := range s.AST.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && !says(d.Doc) && (d.Recv == nil || ast.IsExported(receiver(d))) {
				report(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.TypeSpec:
					if sp.Name.IsExported() && !says(sp.Doc) && (d.Lparen != token.NoPos || !says(d.Doc)) {
						report(sp.Name)
					}
				case *ast.ValueSpec: // one comment may stand over a group, or at the end of a line
					for _, name := range sp.Names {
						if name.IsExported() && !says(d.Doc) && !says(sp.Doc) && !says(sp.Comment) {
							report(name)
						}
					}
				}
			}
		}
	}
	return found
}

// says reports whether a comment has words in it, directives left out.
func says(doc *ast.CommentGroup) bool {
	return doc != nil && strings.TrimSpace(doc.Text()) != ""
}

// receiver is the name of the method's type.
func receiver(f *ast.FuncDecl) string {
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
