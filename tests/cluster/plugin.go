package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// installPlugin builds or copies the plugins that the options ask for.
func (c *Cluster) installPlugin(ctx context.Context, pluginDir string) error {
	switch c.Options.Plugin {
	case PluginC:
		return c.buildPlugin(ctx, pluginDir)
	case PluginLua:
		return c.copySource("contrib/job_submit.lua", filepath.Join(c.Dir, "conf", "job_submit.lua"))
	}
	return nil
}

func (c *Cluster) buildPlugin(ctx context.Context, pluginDir string) error {
	root, err := sourceRoot()
	if err != nil {
		return err
	}
	build := filepath.Join(c.Dir, "run", "plugin")
	if err := os.Mkdir(build, 0o755); err != nil {
		return fmt.Errorf("making a place to build the plugin: %w", err)
	}
	sources, _ := filepath.Glob(filepath.Join(root, "slurmplugin", "*.[ch]"))
	for _, path := range append(sources, filepath.Join(root, "slurmplugin", "Makefile")) {
		rel, _ := filepath.Rel(root, path)
		if err := c.copySource(rel, filepath.Join(build, filepath.Base(path))); err != nil {
			return err
		}
	}
	if _, err := c.Exec(ctx, "root", "make", "-s", "-C", "/run/plugin", "install", "PLUGINDIR="+pluginDir); err != nil {
		return fmt.Errorf("building the plugins against Slurm of %s: %w", c.Options.Suite, err)
	}
	return nil
}

// copySource copies a file of this repository.
func (c *Cluster) copySource(name, to string) error {
	root, err := sourceRoot()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("copying %s into the cluster: %w", name, err)
	}
	return nil
}

// sourceRoot is the nearest folder upwards with this module's go.mod.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/fairlease/fairlease\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the plugin's source is not found: run inside a checkout of fairlease")
		}
		dir = up
	}
}
