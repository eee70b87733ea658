// Package certs reads the certificates of clients that ask servers over TLS.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Files names the certificates of a client.
type Files struct {
	CAFile     string // certificate authority; "" = the system's
	CertFile   string // client certificate and key; "" = none
	KeyFile    string
	ServerName string // in the server's certificate; "" = the address's host
}

// Load reads the files.
func (f Files) Load() (*tls.Config, error) {
	c := &tls.Config{ServerName: f.ServerName, MinVersion: tls.VersionTLS12}
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authority: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", f.CAFile)
		}
	}
	if f.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
