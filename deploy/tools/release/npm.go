package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// wrapper starts the program of the package for this platform.
//
//go:embed wrapper.js
var wrapper []byte

// Node.js's names of the platforms.
var nodeNames = map[string]string{"amd64": "x64", "arm64": "arm64", "windows": "win32", "linux": "linux", "darwin": "darwin"}

// npmPackages writes one package for each platform and one that depends on all of them.
func (r release) npmPackages(platforms []platform) error {
	optional := make(map[string]string)
	for _, p := range platforms {
		system, cpu := nodeNames[p.os], nodeNames[p.arch]
		if system == "" || cpu == "" {
			return fmt.Errorf("npm has no name for %s %s", p.os, p.arch)
		}
		name := r.npm + "-" + system + "-" + cpu
		optional[name] = r.version
		program, err := os.ReadFile(r.path(p))
		if err != nil {
			return err
		}
		about := map[string]any{
			"name": name, "version": r.version, "description": "Palimpsest for " + system + " " + cpu, "license": "Apache-2.0",
			"os": []string{system}, "cpu": []string{cpu}, "preferUnplugged": true,
		}
		if err := r.npmPackage(name, about, entry{"package/bin/" + p.program(), 0o755, program}); err != nil {
			return err
		}
	}
	about := map[string]any{
		"name": r.npm, "version": r.version, "description": about, "license": "Apache-2.0",
		"bin": map[string]string{product: "bin/palimpsest.js"}, "optionalDependencies": optional, "engines": map[string]string{"node": ">=18"},
	}
	return r.npmPackage(r.npm, about, entry{"package/bin/palimpsest.js", 0o755, wrapper})
}

func (r release) npmPackage(name string, about map[string]any, file entry) error {
	described, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	entries := []entry{{"package/package.json", 0o644, append(described, '\n')}, {"package/LICENSE", 0o644, license}, file}
	path := filepath.Join(r.out, fmt.Sprintf("npm-%s-%s.tgz", strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-"), r.version))
	return toFile(path, func(w io.Writer) error { return writeTarGzip(w, entries, r.at) })
}
