// Package site runs the web server that a configuration describes.
package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/user"
	"strconv"
	"sync/atomic"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry"
	"github.com/fairlease/fairlease/sidecar/web"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Page makes the handler of the page.
type Page func(api.Source) http.Handler

// Serve answers until ctx ends. page may be nil. ready is called when it answers and has looked at the journal once; say is told of
// events, failed of errors of the journal.
func Serve(ctx context.Context, cfg *config.Config, version string, page Page, ready func(), say func(string), failed func(error)) error {
	if cfg.Database.URL == "" {
		_, err := connect.Journal(ctx, cfg) // says what to set
		return err
	}
	var done atomic.Int32
	step := func() { // of two
		if done.Add(1) == 2 {
			ready()
		}
	}
	keeper := &scene.Keeper{Stance: cfg.Stance, Failed: failed, Looked: step, Open: func(ctx context.Context) (*store.Store, error) { return open(ctx, cfg) }}
	s, err := server(cfg, version, keeper)
	if err != nil {
		return err
	}
	switch verifier, err := connect.Verifier(cfg); {
	case err != nil:
		say(err.Error())
	case verifier != nil:
		s.Door.Tokens = &telemetry.Tokens{Ask: verifier.Takes}
	}
	s.Say, s.Open = say, step
	if page != nil {
		s.Page = page(keeper)
	}
	ctx, stop := context.WithCancel(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		keeper.Run(ctx)
	}()
	defer func() {
		stop()
		<-read
	}()
	if err := s.Serve(ctx); err != nil {
		return &failure.Error{Code: failure.Misuse, What: "the web server cannot run", Err: err, Next: "correct the keys under web in the configuration"}
	}
	return nil
}

// open opens the journal, if this database user may read all of it.
func open(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	s, err := connect.JournalOf(ctx, cfg, connect.Web)
	if err != nil {
		return nil, err
	}
	all, err := s.Tenants.ReadsAll(ctx)
	if err == nil && !all {
		err = errors.New("this database user may not read whole rounds: give it the role fairlease_reader (see ROLES in fairlease(1))")
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// server gives the server of a configuration.
func server(cfg *config.Config, version string, source api.Source) (*web.Server, error) {
	w := &cfg.Web
	proxies, err := w.Proxies()
	if err != nil {
		return nil, err // the configuration was checked
	}
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("asking for the user of this process: %w", err)
	}
	door := &rights.Door{Proxies: proxies, UserHeader: w.UserHeader}
	for _, name := range w.ProxyUsers {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, &failure.Error{Code: failure.Misuse, What: "web.proxy_users names a user that this host does not know", Err: err}
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the number of user %s: %w", name, err)
		}
		door.ProxyUsers = append(door.ProxyUsers, uint32(uid))
	}
	if w.Munge {
		door.Open = telemetry.Munge{Socket: w.MungeSocket}.Open
	}
	return &web.Server{
		Source: source, API: &api.API{Source: source, Version: version}, Door: door,
		Policy:      &rights.Policy{Operators: w.Operators, Groups: w.OperatorGroups, Owners: []string{"root", me.Username}, GroupsOf: rights.GroupsOf},
		NoAnonymous: w.Anonymous == config.AnonymousNothing,
		Listen:      w.Listen, WebConfig: w.WebConfig, Socket: w.Socket, MaxConnections: w.MaxConnections,
	}, nil
}
