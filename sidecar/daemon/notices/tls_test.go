package notices_test

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
)

func tlsOn(on net.Listener, c *tls.Config) net.Listener { return tls.NewListener(on, c) }

// certificate gives the certificate of a test server, which is its own authority, too.
func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
