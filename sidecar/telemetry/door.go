package telemetry

import (
	"net"
	"slices"
	"sync"
)

// Door is a listener with a maximum number of open connections. Beyond it, the address with most
// connections loses its oldest: an address that opens connections and leaves them idle only shuts
// out itself.
type Door struct {
	net.Listener
	Most int

	lock sync.Mutex
	in   []*guest // oldest first
}

// guest is an open connection.
type guest struct {
	net.Conn
	door *Door
	from string
}

// Accept waits for the next connection.
func (d *Door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{conn, d, host(conn.RemoteAddr().String())}
	if out := d.admit(g); out != nil {
		_ = out.Close()
	}
	return g, nil
}

// host gives an address without its port.
func host(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// admit registers a connection, and gives the one that must be closed; nil = none.
func (d *Door) admit(g *guest) *guest {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.in = append(d.in, g)
	if len(d.in) <= d.Most {
		return nil
	}
	has, most := map[string]int{}, 0
	for _, g := range d.in {
		has[g.from]++
		most = max(most, has[g.from])
	}
	return d.in[slices.IndexFunc(d.in, func(g *guest) bool { return has[g.from] == most })]
}

// Close closes the connection, and forgets it.
func (g *guest) Close() error {
	g.door.lock.Lock()
	if i := slices.Index(g.door.in, g); i >= 0 {
		g.door.in = slices.Delete(g.door.in, i, i+1)
	}
	g.door.lock.Unlock()
	return g.Conn.Close()
}
