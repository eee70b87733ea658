package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// marked matches markOf: the table, the engine, the commit.
const marked = `<!-- results: ([a-z-]+), engine ([0-9a-f]+|unknown), commit ([^>]*?) -->`

// pictureMark ends a picture.
var pictureMark = regexp.MustCompile(marked + `\n$`)

// mark is a table on a page, with the line above it: that ends with its name, its engine and its commit, and is made, too.
var mark = regexp.MustCompile(`(?m)^.*` + marked + `\n\n((?:\|.*\n)+)`)

// markOf is the mark of what an engine made for a table.
func markOf(table string, by engine) string {
	return fmt.Sprintf("<!-- results: %s, engine %s, commit %s -->", table, by.key, by.commit)
}

// block is a table as it stands on a page.
func (t *table) block(body string, by engine) string {
	return fmt.Sprintf("Made by commit %s (`make results TABLE=%s`). %s %s\n\n%s", by.commit, t.name, t.about, markOf(t.name, by), body)
}

// replace puts a table onto a page that has a place for it; ok = it has.
func replace(page, name, block string) (_ string, ok bool) {
	for _, m := range mark.FindAllStringSubmatchIndex(page, -1) {
		if page[m[2]:m[3]] == name {
			return page[:m[0]] + block + page[m[1]:], true
		}
	}
	return page, false
}

// publish writes a table onto the pages that have a place for it, and its pictures beside docs/results.md.
func (t *table) publish(b *bank, by engine) error {
	body := t.markdown(b.has)
	block := t.block(body, by)
	placed := false
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page, ok := replace(string(text), t.name, block)
		if !ok {
			continue
		}
		placed = true
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: table %s is by commit %s\n", path, t.name, by.commit)
	}
	if !placed {
		fmt.Printf("\n%s\n", block)
	}
	if t.pictures == nil {
		return nil
	}
	for _, p := range t.pictures(b.has) {
		if err := p.draw(markOf(t.name, by)); err != nil {
			return err
		}
	}
	return nil
}

// stale names the tables on the pages, and the pictures beside them, that another engine made.
func stale(now string) (out []string, err error) {
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, m := range mark.FindAllStringSubmatch(string(text), -1) {
			if m[2] != now {
				out = append(out, fmt.Sprintf("%s: table %s is stale: another engine made it (commit %s)", path, m[1], m[3]))
			}
		}
	}
	drawn, err := filepath.Glob(pictures)
	if err != nil {
		return nil, err
	}
	for _, path := range drawn {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if m := pictureMark.FindSubmatch(text); m == nil || string(m[2]) != now {
			out = append(out, path+" is stale: another engine made it")
		}
	}
	return out, nil
}

// cells reads the rows of a Markdown table, less its head.
func cells(body string) (rows [][]string) {
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		var row []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows[min(2, len(rows)):]
}
