package main

import (
	_ "embed"
	"io"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed formula.rb.tmpl
var formulaText string

var formulaTemplate = template.Must(template.New("formula").Parse(formulaText))

// formula writes a Homebrew formula for the macOS and Linux archives.
func (r release) formula(platforms []platform) error {
	type build struct{ System, CPU, URL, Sum string }
	var builds []build
	for _, p := range platforms {
		if p.os == "windows" {
			continue
		}
		sum, err := sha256Of(filepath.Join(r.out, r.name(p)))
		if err != nil {
			return err
		}
		system, cpu := map[string]string{"darwin": "macos", "linux": "linux"}[p.os], map[string]string{"amd64": "intel", "arm64": "arm"}[p.arch]
		builds = append(builds, build{system, cpu, strings.TrimSuffix(r.url, "/") + "/" + r.name(p), sum})
	}
	return toFile(filepath.Join(r.out, product+".rb"), func(w io.Writer) error {
		return formulaTemplate.Execute(w, map[string]any{"About": about, "Version": r.version, "Builds": builds, "URL": r.url})
	})
}
