// Command testcluster brings a real Slurm, or a private PostgreSQL, up and down on this machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

const usage = `usage: testcluster COMMAND

  up [-name N] [-suite trixie|forky] [-plugin none|c|lua] [-options FILE.json]
                                boot a cluster (as root); FILE holds testcluster.Options as JSON
  status [-name N] [-json]      what runs, and how to reach it
  exec [-name N] USER COMMAND…  run a command in the cluster, as root, restd or one of its users
  down [-name N]                end it and remove all that it left
  cache SUITE…                  make base trees now, so that up is quick later
  postgres up|down [-name N]    a private PostgreSQL on a unix socket; up prints its address
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		var exit exitCode
		if errors.As(err, &exit) {
			os.Exit(int(exit))
		}
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("no command: see `testcluster help`")
	}
	command, args := args[0], args[1:]
	switch command {
	case "up":
		return up(ctx, args)
	case "status":
		return status(args)
	case "exec":
		return execute(ctx, args)
	case "down":
		return down(args)
	case "cache":
		return cache(ctx, args)
	case "postgres":
		return postgres(ctx, args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	return fmt.Errorf("unknown command %q: see `testcluster help`", command)
}

// flags with the cluster's name; parse them before use.
func flags(command string) (set *flag.FlagSet, name *string) {
	set = flag.NewFlagSet(command, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set, set.String("name", "demo", "")
}

func parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("%s: %w: see `testcluster help`", set.Name(), err)
	}
	return nil
}

func up(ctx context.Context, args []string) error {
	set, name := flags("up")
	suite := set.String("suite", "", "")
	plugin := set.String("plugin", "", "")
	file := set.String("options", "", "")
	if err := parse(set, args); err != nil {
		return err
	}
	var o testcluster.Options
	if *file != "" {
		var err error
		if o, err = readOptions(*file); err != nil {
			return err
		}
	}
	o.Name, o.Progress = *name, os.Stderr
	if *suite != "" {
		o.Suite = *suite
	}
	if *plugin != "" {
		o.Plugin = testcluster.Plugin(*plugin)
	}
	c, err := testcluster.Up(ctx, o)
	if err != nil {
		return err
	}
	return describe(c, false)
}

func readOptions(file string) (testcluster.Options, error) {
	var o testcluster.Options
	f, err := os.Open(file)
	if err != nil {
		return o, fmt.Errorf("reading options: %w", err)
	}
	defer f.Close()
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return o, fmt.Errorf("reading options of %s: %w", file, err)
	}
	return o, nil
}

func status(args []string) error {
	set, name := flags("status")
	asJSON := set.Bool("json", false, "")
	if err := parse(set, args); err != nil {
		return err
	}
	c, err := testcluster.Open(*name, "")
	if err != nil {
		return err
	}
	return describe(c, *asJSON)
}

// describe prints how to reach the cluster and which of its daemons run.
func describe(c *testcluster.Cluster, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"name": c.Name, "dir": c.Dir, "suite": c.Options.Suite, "rest_socket": c.RestSocket(),
			"scontrol": c.Scontrol(), "heartbeat_dir": c.HeartbeatDir(), "running": c.Running()})
	}
	fmt.Printf("cluster    %s (Debian %s)\nslurmrestd %s\nscontrol   %s\nheartbeats %s\nhomes      %s\nrunning    %v\n", c.Name, c.Options.Suite, c.RestSocket(),
		strings.Join(c.Scontrol(), " "), c.HeartbeatDir(), c.Dir+"/home", c.Running())
	return nil
}

func execute(ctx context.Context, args []string) error {
	set, name := flags("exec")
	if err := parse(set, args); err != nil {
		return err
	}
	if set.NArg() < 2 {
		return errors.New("exec needs a user and a command: see `testcluster help`")
	}
	c, err := testcluster.Open(*name, "")
	if err != nil {
		return err
	}
	line := c.Command(set.Arg(0), set.Args()[1:]...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitCode(exit.ExitCode()) // the command has said why
	}
	return err
}

// exitCode of a command inside, passed on without a word.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func down(args []string) error {
	set, name := flags("down")
	if err := parse(set, args); err != nil {
		return err
	}
	return testcluster.DownByName(*name, "")
}

func cache(ctx context.Context, suites []string) error {
	if len(suites) == 0 {
		suites = testcluster.Suites
	}
	for _, suite := range suites {
		if err := testcluster.EnsureBase(ctx, suite, os.Stderr); err != nil {
			return err
		}
	}
	return nil
}

func postgres(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("postgres needs up or down: see `testcluster help`")
	}
	set, name := flags("postgres")
	if err := parse(set, args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "up":
		p, err := testcluster.PostgresUp(ctx, *name)
		if err != nil {
			return err
		}
		fmt.Println(p.DSN())
		return nil
	case "down":
		return testcluster.PostgresDown(*name)
	}
	return fmt.Errorf("postgres %s: use up or down", args[0])
}
