// Command site makes the documentation one site with search, which needs no server.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/fairlease/fairlease/tests/site"
)

func main() {
	out := flag.String("out", "out/site", "folder for the site")
	flag.Parse()
	if err := site.Build(".", *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("open %s/index.html\n", *out)
}
