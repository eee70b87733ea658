package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Audit says where the record of administration goes beside the journal.
type Audit struct {
	Syslog string `yaml:"syslog"`
}

// Values of audit.syslog beside addresses: nothing goes there, or it goes to the syslog of the leading daemon's host.
const (
	SyslogOff   = "off"
	SyslogLocal = "local"
)

// SyslogPlace gives the network (unixgram or udp) and the address of a value of audit.syslog; both are empty for off.
func SyslogPlace(value string) (network, address string, err error) {
	switch value {
	case SyslogOff:
		return "", "", nil
	case SyslogLocal:
		return "unixgram", "/dev/log", nil
	}
	u, err := url.Parse(value)
	switch {
	case err != nil:
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return "unixgram", u.Path, nil
	case u.Scheme == "udp" && value == "udp://"+u.Host:
		if host, port, err := net.SplitHostPort(u.Host); err == nil && host != "" && port != "" {
			return "udp", u.Host, nil
		}
	}
	return "", "", fmt.Errorf("%q is no syslog; write off, local, unix:/path/of/the/socket, or udp://HOST:PORT, as in udp://192.0.2.1:514", value)
}
