package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A document of SPDX 2.3: https://spdx.github.io/spdx-spec/v2.3/.
type (
	spdxDocument struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      spdxCreation   `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Relationships []spdxRelation `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID       string          `json:"SPDXID"`
		Name     string          `json:"name"`
		Version  string          `json:"versionInfo"`
		Location string          `json:"downloadLocation"`
		Analyzed bool            `json:"filesAnalyzed"`
		License  string          `json:"licenseDeclared"`
		Found    string          `json:"licenseConcluded"`
		Rights   string          `json:"copyrightText"`
		Refs     []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Kind     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelation struct {
		Element string `json:"spdxElementId"`
		Kind    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// sbom writes the modules of the programs, from their own build information.
func (r release) sbom(platforms []platform) error {
	modules := make(map[string]*debug.Module)
	var programs strings.Builder
	for _, p := range platforms {
		info, err := buildinfo.ReadFile(r.path(p))
		if err != nil {
			return fmt.Errorf("modules of %s: %w", r.path(p), err)
		}
		modules["stdlib"] = &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, module := range info.Deps {
			modules[module.Path] = cmp.Or(module.Replace, module)
		}
		sum, err := sha256Of(r.path(p))
		if err != nil {
			return err
		}
		programs.WriteString(sum)
	}
	main := spdxPackage{ID: "SPDXRef-" + product, Name: product, Version: r.version, Location: "NOASSERTION", License: "Apache-2.0", Found: "NOASSERTION", Rights: "NOASSERTION"}
	document := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: product + "-" + r.version,
		Namespace:     fmt.Sprintf("https://spdx.org/spdxdocs/%s-%s-%x", product, r.version, sha256.Sum256([]byte(programs.String()))),
		Creation:      spdxCreation{r.at.Format(time.RFC3339), []string{"Tool: palimpsest-release"}},
		Packages:      []spdxPackage{main},
		Relationships: []spdxRelation{{"SPDXRef-DOCUMENT", "DESCRIBES", main.ID}},
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		module := modules[path]
		id := "SPDXRef-" + regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(module.Path+"-"+module.Version, "-")
		document.Packages = append(document.Packages, spdxPackage{
			ID: id, Name: module.Path, Version: module.Version, Location: "NOASSERTION", License: "NOASSERTION", Found: "NOASSERTION", Rights: "NOASSERTION",
			Refs: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module.Path + "@" + module.Version}},
		})
		document.Relationships = append(document.Relationships, spdxRelation{main.ID, "DEPENDS_ON", id})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("%s_%s.spdx.json", product, r.version)), append(text, '\n'), 0o644)
}
