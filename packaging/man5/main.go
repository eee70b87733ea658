// Command man5 prints the manual page of fairlease.yaml: the keys with their defaults, and the comments above them.
//
//	go run ./packaging/man5 etc/fairlease.yaml
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "man5: name the commented configuration, etc/fairlease.yaml")
		os.Exit(2)
	}
	f, err := os.Open(os.Args[1])
	if err == nil {
		err = page(f, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "man5:", err)
		os.Exit(1)
	}
}

// page writes the manual page of a configuration. A blank line ends a group of comments and keys; the first group is about the
// file as a whole.
func page(in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprint(w, `.TH FAIRLEASE.YAML 5 "" "fairlease" "File formats"
.SH NAME
fairlease.yaml \- the configuration of fairlease
.SH DESCRIPTION
`)
	lines := bufio.NewScanner(in)
	keys := false
	for lines.Scan() {
		line := lines.Text()
		text := strings.TrimSpace(line)
		switch comment, is := strings.CutPrefix(text, "#"); {
		case text == "":
			fmt.Fprintln(w, ".PP")
		case is:
			fmt.Fprintln(w, escape(strings.TrimPrefix(comment, " ")))
		default:
			if !keys {
				fmt.Fprintln(w, ".SH KEYS\nBelow each description, the key with its default.")
				keys = true
			}
			fmt.Fprintf(w, ".PP\n.nf\n.B \"%s\"\n.fi\n", strings.ReplaceAll(escape(line), `"`, `\(dq`))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Fprint(w, ".SH SEE ALSO\n.BR fairlease (1),\n.BR fairlease (8)\n")
	return w.Flush()
}

// escape writes text so that roff prints it as it is.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `…`, `...`, `’`, `'`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
