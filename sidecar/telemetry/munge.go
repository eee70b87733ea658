package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Munge opens credentials with the program unmunge.
type Munge struct {
	Program string // "" = unmunge
	Socket  string // munged's socket; "" = its default
}

// Refused is a credential that munged rejects.
type Refused struct{ Why string }

func (r *Refused) Error() string { return "the credential is refused: " + r.Why }

// refusals are unmunge's exit codes about the credential, not about munged (munge.h).
var refusals = map[int]string{
	4: "it is too long", 8: "it is no MUNGE credential", 9: "its version is unknown", 10: "its cipher is unknown",
	11: "its MAC is unknown", 12: "its compression is unknown", 13: "its realm is unknown", 14: "it is damaged, or of another key",
	15: "it has expired; is the clock right?", 16: "it is from the future; is the clock right?",
	17: "it was used before; make a new one for each report", 18: "it is not for us",
}

// Open gives a credential's author, and its payload. Its error is a *Refused if the credential is
// at fault.
func (m Munge) Open(ctx context.Context, credential []byte) (uid uint32, payload []byte, err error) {
	if text := bytes.TrimSpace(credential); !bytes.HasPrefix(text, []byte("MUNGE:")) || !bytes.HasSuffix(text, []byte(":")) {
		return 0, nil, &Refused{refusals[8]} // a process for each would be a gift to those who send nonsense
	}
	program := m.Program
	if program == "" {
		program = "unmunge"
	}
	args := []string{"--numeric", "--keys=UID,LENGTH"}
	if m.Socket != "" {
		args = append(args, "--socket="+m.Socket)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = bytes.NewReader(credential)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && refusals[exit.ExitCode()] != "":
		return 0, nil, &Refused{refusals[exit.ExitCode()]}
	case err != nil:
		return 0, nil, fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(said.String()))
	}
	return opened(out)
}

// opened parses the output of unmunge: the author and the length of the payload, an empty line,
// and the payload verbatim.
func opened(out []byte) (uid uint32, payload []byte, err error) {
	head, payload, ok := bytes.Cut(out, []byte("\n\n"))
	found := map[string]uint64{}
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
		if _, twice := found[key]; err != nil || twice {
			return 0, nil, fmt.Errorf("unmunge wrote %q", line)
		}
		found[key] = n
	}
	id, hasID := found["UID"]
	if length, there := found["LENGTH"]; !ok && length > 0 || !hasID || !there || uint64(len(payload)) != length {
		return 0, nil, fmt.Errorf("unmunge wrote %d bytes that make no sense", len(out))
	}
	return uint32(id), payload, nil
}
