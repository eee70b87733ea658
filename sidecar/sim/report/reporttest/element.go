// Package reporttest reads pages and pictures that tests check.
package reporttest

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// Element is a part of a page or a picture.
type Element struct {
	Name  string
	Attr  map[string]string
	Words string
	In    []*Element
}

// Parse fails the test unless the text is well-formed, tag by tag. Its result has the outermost elements.
func Parse(t testing.TB, text string) *Element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	open := []*Element{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 1 {
			return open[0]
		}
		if err != nil {
			t.Fatal(err)
		}
		top := open[len(open)-1]
		switch x := token.(type) {
		case xml.StartElement:
			e := &Element{Name: x.Name.Local, Attr: map[string]string{}}
			for _, a := range x.Attr {
				e.Attr[a.Name.Local] = a.Value
			}
			top.In = append(top.In, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.Words += string(x)
		}
	}
}

// Find gives the elements below that match, in the order of the text.
func (e *Element) Find(match func(*Element) bool) []*Element {
	var out []*Element
	for _, x := range e.In {
		if match(x) {
			out = append(out, x)
		}
		out = append(out, x.Find(match)...)
	}
	return out
}

// All gives the elements below with a name.
func (e *Element) All(name string) []*Element {
	return e.Find(func(x *Element) bool { return x.Name == name })
}

// Class gives the elements below with a class.
func (e *Element) Class(class string) []*Element {
	return e.Find(func(x *Element) bool { return slices.Contains(strings.Fields(x.Attr["class"]), class) })
}

// Text gives an element's own text, without the spaces around it.
func (e *Element) Text() string { return strings.TrimSpace(e.Words) }
