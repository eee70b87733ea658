// Package site makes the documentation one site with search, from the Markdown files of the repository. It needs no server: the
// pages work from a folder, and ask no other host.
//
// README.md is the first page, and its section Documentation is the navigation. Links between pages, their anchors and
// the files that pages show are checked: Build fails where one leads nowhere.
package site

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed assets
var assets embed.FS

var frame = template.Must(template.ParseFS(assets, "assets/page.html"))

// markdown reads GitHub's tables, and gives headings the anchors that GitHub gives them.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// sources are the files that become pages, as patterns below the root.
var sources = []string{"*.md", "docs/*.md", "research/*.md", "contrib/python/*.md"}

// page is one file of Markdown.
type page struct {
	source string // "docs/install.md"
	text   []byte
	tree   ast.Node
	title  string
	parts  []part
}

// part is a heading with the text below it, as search finds it. The names are those of the index.
type part struct {
	Page   string `json:"p"`           // "docs/install.html"
	Anchor string `json:"a"`           // of the heading; "" = the page's start
	Title  string `json:"t"`           // of the page
	Head   string `json:"h,omitempty"` // "" = before the first heading
	Text   string `json:"x"`
}

// group is a part of the navigation.
type group struct {
	Name  string
	Pages []entry
}

type entry struct{ Href, Title string }

// htmlOf names the page of a source.
func htmlOf(source string) string {
	if source == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(source, ".md") + ".html"
}

// Build reads the sources below root and writes the site into the folder out. An error names all links that lead nowhere.
func Build(root, out string) error {
	pages := map[string]*page{}
	for _, pattern := range sources {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			source, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			p := &page{source: filepath.ToSlash(source), text: raw, tree: markdown.Parser().Parse(text.NewReader(raw))}
			p.read()
			pages[p.source] = p
		}
	}
	if pages["README.md"] == nil {
		return fmt.Errorf("%s has no README.md", root)
	}
	menu := navigation(pages)
	files := map[string]bool{} // that pages show or link to
	var wrong []error
	for _, p := range sorted(pages) {
		wrong = append(wrong, p.link(root, pages, files)...)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	var index []part
	for _, p := range sorted(pages) {
		index = append(index, p.parts...)
		if err := p.write(out, menu); err != nil {
			return err
		}
	}
	words, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if err := put(out, "site/index.js", append([]byte("found("), append(words, ");\n"...)...)); err != nil {
		return err
	}
	for _, name := range []string{"site.css", "site.js"} {
		content, err := assets.ReadFile("assets/" + name)
		if err == nil {
			err = put(out, "site/"+name, content)
		}
		if err != nil {
			return err
		}
	}
	for file := range files {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = put(out, shown(file), content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sorted(pages map[string]*page) []*page {
	var out []*page
	for _, p := range pages {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *page) int { return strings.Compare(a.source, b.source) })
	return out
}

// shown names a copied file: browsers show text, and save what they do not know.
func shown(file string) string {
	if slices.Contains([]string{".png", ".svg"}, path.Ext(file)) {
		return file
	}
	return file + ".txt"
}

func put(out, name string, content []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// anchor gives the id of a heading.
func anchor(n ast.Node) string {
	id, _ := n.AttributeString("id")
	b, _ := id.([]byte)
	return string(b)
}

// read divides the page into its parts.
func (p *page) read() {
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		words := strings.Join(strings.Fields(plain(n, p.text)), " ")
		h, heading := n.(*ast.Heading)
		if heading && p.title == "" {
			p.title = words
		}
		if heading || len(p.parts) == 0 {
			p.parts = append(p.parts, part{Page: htmlOf(p.source)})
		}
		now := &p.parts[len(p.parts)-1]
		if heading {
			now.Head = words
			now.Anchor = anchor(h)
		} else {
			now.Text += words + " "
		}
	}
	for i := range p.parts {
		p.parts[i].Title = p.title
	}
}

// plain gives the words of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the visitor gives no error
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Value(source))
				if t.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// navigation is the section Documentation of README.md: its paragraphs in bold name groups, and its lists name pages. Pages that
// it does not name follow.
func navigation(pages map[string]*page) []group {
	start := pages["README.md"]
	menu := []group{{Name: "Start", Pages: []entry{{"index.html", start.title}}}}
	named := map[string]bool{start.source: true}
	inside := false
	for n := start.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			inside = anchor(h) == "documentation"
			continue
		}
		if !inside {
			continue
		}
		if p, ok := n.(*ast.Paragraph); ok {
			if bold, ok := p.FirstChild().(*ast.Emphasis); ok && bold.Level == 2 {
				menu = append(menu, group{Name: strings.TrimSuffix(plain(bold, start.text), ".")})
			}
			continue
		}
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the visitor gives no error
			l, ok := n.(*ast.Link)
			if !ok || !entering {
				return ast.WalkContinue, nil
			}
			if to := pages[string(l.Destination)]; to != nil && !named[to.source] {
				named[to.source] = true
				last := &menu[len(menu)-1]
				last.Pages = append(last.Pages, entry{htmlOf(to.source), to.title})
			}
			return ast.WalkSkipChildren, nil
		})
	}
	more := group{Name: "More"}
	for _, p := range sorted(pages) {
		if !named[p.source] {
			more.Pages = append(more.Pages, entry{htmlOf(p.source), p.title})
		}
	}
	return append(menu, more)
}

// link lets the page's links lead to pages of the site, and notes the files that it needs.
func (p *page) link(root string, pages map[string]*page, files map[string]bool) (wrong []error) {
	resolve := func(to string) string {
		if strings.Contains(to, ":") { // another host
			return to
		}
		file, at, anchored := strings.Cut(to, "#")
		source := p.source
		if file != "" {
			source = path.Join(path.Dir(p.source), file)
		}
		target := pages[source]
		switch {
		case target != nil && anchored && !slices.ContainsFunc(target.parts, func(x part) bool { return x.Anchor == at }):
			wrong = append(wrong, fmt.Errorf("%s links to %s, and %s has no such heading", p.source, to, source))
		case target != nil && file == "":
			return to
		case target != nil:
			file = path.Join(path.Dir(file), path.Base(htmlOf(source)))
		default:
			if s, err := os.Stat(filepath.Join(root, source)); err != nil || s.IsDir() {
				wrong = append(wrong, fmt.Errorf("%s links to %s, which is no file", p.source, to))
				return to
			}
			files[source] = true
			file = shown(file)
		}
		if anchored {
			file += "#" + at
		}
		return file
	}
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the visitor gives no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch x := n.(type) {
		case *ast.Link:
			x.Destination = []byte(resolve(string(x.Destination)))
		case *ast.Image:
			x.Destination = []byte(resolve(string(x.Destination)))
		}
		return ast.WalkContinue, nil
	})
	return wrong
}

// write puts the page into its frame.
func (p *page) write(out string, menu []group) error {
	var body, whole bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.tree); err != nil {
		return fmt.Errorf("%s: %w", p.source, err)
	}
	up := strings.Repeat("../", strings.Count(p.source, "/"))
	tables := strings.NewReplacer("<table>", `<div class="scroll" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`, "<th></th>", "<td></td>")
	err := frame.Execute(&whole, struct {
		Title, Up, Here string
		Menu            []group
		Body            template.HTML
	}{p.title, up, htmlOf(p.source), menu, template.HTML(tables.Replace(body.String()))})
	if err != nil {
		return fmt.Errorf("%s: %w", p.source, err)
	}
	return put(out, htmlOf(p.source), whole.Bytes())
}
