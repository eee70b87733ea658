package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
)

// Playground is the playground's page on a server of static files.
type Playground struct {
	URL   string
	Built string // the output of the build, with the size

	folder string
	server *httptest.Server
	lock   sync.Mutex
	asked  []string
}

// ServePlayground builds the page and serves it, gzipped program included, with no header of its own.
func ServePlayground() (*Playground, error) {
	folder, err := os.MkdirTemp("", "playground")
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "run", "github.com/fairlease/fairlease/sidecar/cmd/fairlease-playground", "-o", folder).CombinedOutput()
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, fmt.Errorf("building the playground: %w\n%s", err, out)
	}
	p := &Playground{Built: string(out), folder: folder}
	files := http.FileServer(http.Dir(folder))
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.lock.Lock()
		p.asked = append(p.asked, r.Method+" "+r.URL.String())
		p.lock.Unlock()
		files.ServeHTTP(w, r)
	}))
	p.URL = p.server.URL
	return p, nil
}

// Asked gives all requests so far.
func (p *Playground) Asked() []string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return append([]string{}, p.asked...)
}

// Close ends the server and removes the page.
func (p *Playground) Close() {
	p.server.Close()
	_ = os.RemoveAll(p.folder)
}

// Ready and Done are expressions that become true when the page can simulate, and when it has.
const (
	Ready = `!document.getElementById("run").disabled`
	Done  = `document.getElementById("status").textContent === "Done." || !document.getElementById("error").hidden`
)
