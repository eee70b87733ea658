package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A rule is a pattern that no sentence may match, and the advice for its author.
type rule struct {
	pattern *regexp.Regexp
	except  *regexp.Regexp // sentences that match this are fine
	advice  string
}

var rules = []rule{
	{
		pattern: regexp.MustCompile(`^(?:[Ww]ho|[Ww]hat|[Ww]hose|[Ww]hoever|[Ww]hom)\b`),
		except:  regexp.MustCompile(`\?["”)*_]*$`),
		advice:  "begin with a noun",
	},
	{
		pattern: regexp.MustCompile(`\b(?:is|are|was|were) to [a-z]+`),
		except: regexp.MustCompile(`(?i)\b(?:aim|goal|purpose|point|idea|way|advice) (?:is|was) to\b|` +
			`\b(?:is|are|was|were) to (?:the|a|an|this|that|these|those|its|their|our|each|every|any|all|both|one|no|another|other|\w+ing)\b`),
		advice: `say "must", "should", "can" or "will"`,
	},
	{pattern: regexp.MustCompile(`(?i)\b(?:of which|for whom|by whom|to whom)\b`), advice: "split the sentence"},
	{pattern: regexp.MustCompile(`(?i)\bas far as\b`), advice: "say what holds, and where"},
	{pattern: regexp.MustCompile(`(?i)\b(?:nobody|no one)\b[^.;:]{0,60}\bbut\b`), advice: `say "only"`},
	{pattern: regexp.MustCompile(`(?i)\bwhat (?:is|was|are|were) (?:[\w'-]+ ){1,5}(?:is|was|are|were)\b`), advice: "begin with a noun"},
	{pattern: regexp.MustCompile(`\b(?:[Hh]e|[Hh]is|[Hh]im|[Hh]imself)\b`), except: regexp.MustCompile(`\bHe et al\b`), advice: `a tenant, user or job is "it" or "they"`},
}

// heading matches the report of a heading or a table's cell that begins with a question word: these are no sentences.
var heading = regexp.MustCompile(`" in "[^"]*[^.:]": begin with a noun$`)

func TestPlainEnglish(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		paragraphs, err := read(path)
		if err != nil {
			return err
		}
		for _, found := range violations(paragraphs) {
			if ext := filepath.Ext(relative); (ext == ".md" || ext == ".1") && heading.MatchString(found) {
				continue
			}
			t.Errorf("%s:%s", relative, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRules shows for each rule a sentence that it catches and one that it does not.
func TestRules(t *testing.T) {
	for _, bad := range []string{
		"What the tenant holds.",
		"Who has most loses the oldest.",
		"Fine. Whose it is does not matter.",
		"A job is to stop.",
		"The nodes, two of which are idle.",
		"The tenant for whom it runs.",
		"As far as the notice reaches.",
		"Nobody may see it but the tenant.",
		"So what is left over is lent.",
		"The tenant gets his share.",
	} {
		if len(violations([]paragraph{{text: bad}})) == 0 {
			t.Errorf("no rule catches %q", bad)
		}
	}
	for _, good := range []string{
		"Which node is it? What does it run?",
		"What now?",
		"The node is to the left.",
		"The aim is to stop early.",
		"The history of this job.",
	} {
		if found := violations([]paragraph{{text: good}}); len(found) != 0 {
			t.Errorf("%q: %v", good, found)
		}
	}
}

// A paragraph is a comment, or lines of a document without an empty line between.
type paragraph struct {
	line  int // of its first line, from 1
	text  string
	named bool // it begins with the name of a declaration, as doc comments do
}

// quotation is the wording of others, of papers for example.
var quotation = regexp.MustCompile(`"[^"]*"|“[^”]*”`)

// sentenceEnd is a full stop, question mark or exclamation mark before a space.
var sentenceEnd = regexp.MustCompile(`[.!?]["”)*_]*\s+`)

// violations returns "line: sentence: advice" for each rule that a sentence breaks.
func violations(paragraphs []paragraph) []string {
	var found []string
	for _, p := range paragraphs {
		p.text = quotation.ReplaceAllStringFunc(p.text, func(quoted string) string {
			return `"` + strings.Repeat("\n", strings.Count(quoted, "\n")) + `"` // lines are counted
		})
		for at := 0; at < len(p.text); {
			end := len(p.text)
			if match := sentenceEnd.FindStringIndex(p.text[at:]); match != nil {
				end = at + match[1]
			}
			raw := p.text[at:end]
			sentence := strings.Join(strings.Fields(raw), " ")
			line := p.line + strings.Count(p.text[:at], "\n")
			at = end
			for _, r := range rules {
				if p.named && strings.HasPrefix(r.pattern.String(), "^") && strings.HasPrefix(p.text, raw) {
					continue
				}
				match := r.pattern.FindString(sentence)
				if match == "" || r.except != nil && r.except.MatchString(sentence) {
					continue
				}
				found = append(found, fmt.Sprintf("%d: %q in %q: %s", line, match, sentence, r.advice))
			}
		}
	}
	return found
}

// read returns the paragraphs of a file, or none for a kind of file without rules.
func read(path string) ([]paragraph, error) {
	switch filepath.Ext(path) {
	case ".go":
		return goComments(path)
	case ".md", ".1":
		return document(path, "")
	case ".sql":
		return document(path, "--")
	case ".yaml":
		return document(path, "#")
	}
	return nil, nil
}

// goComments returns the comments of a Go file.
func goComments(path string) ([]paragraph, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := declared(file)
	var found []paragraph
	for _, group := range file.Comments {
		paragraphs := split(files.Position(group.Pos()).Line, commentText(group))
		if len(paragraphs) > 0 {
			first, _, _ := strings.Cut(paragraphs[0].text, " ")
			paragraphs[0].named = names[first]
		}
		found = append(found, paragraphs...)
	}
	return found, nil
}

// declared returns the names of a file's declarations.
func declared(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// commentText keeps line breaks, unlike CommentGroup.Text, so that lines can be counted.
func commentText(group *ast.CommentGroup) string {
	var lines []string
	for _, comment := range group.List {
		text := strings.TrimSuffix(strings.TrimPrefix(comment.Text, "/*"), "*/")
		lines = append(lines, strings.TrimPrefix(text, "//"))
	}
	return strings.Join(lines, "\n")
}

// document returns the paragraphs of a text file, without the mark that begins a comment line.
func document(path, mark string) ([]paragraph, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		if mark != "" {
			line = strings.TrimSpace(line)
			line = strings.TrimPrefix(line, mark)
		}
		lines[i] = line
	}
	return split(1, strings.Join(lines, "\n")), nil
}

// listItem begins a paragraph of its own: a bullet, a number, a cell of a table, a heading or a macro of man.
var listItem = regexp.MustCompile(`^\s*(?:[-*•] |\d+[.)] |\||#+ |\.[A-Z])`)

// split cuts text at empty lines, at list items and at the cells of tables.
func split(line int, text string) []paragraph {
	var found []paragraph
	fresh := true
	for i, part := range strings.Split(text, "\n") {
		content := strings.TrimSpace(part)
		switch {
		case content == "" || strings.HasPrefix(content, "```") || content == ".PP":
			fresh = true
			continue
		case strings.HasPrefix(content, "|"):
			for cell := range strings.SplitSeq(content, "|") {
				found = append(found, paragraph{line: line + i, text: strings.TrimSpace(cell)})
			}
			fresh = true
			continue
		}
		item := listItem.FindString(part)
		if fresh || item != "" {
			found = append(found, paragraph{line: line + i, text: strings.TrimSpace(strings.TrimPrefix(part, item))})
			fresh = false
			continue
		}
		last := &found[len(found)-1]
		last.text += "\n" + content
	}
	return found
}
