package apiclients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"palimpsest/api/programtest"
	"palimpsest/api/upstream/providerdouble"
)

// session is one run of a client: its folders and its settings.
type session struct {
	install   string // folder of the packages
	home      string
	work      string // the client's project
	temporary string
	url       string // of the proxy, without /v1
	key       string // of the workspace
	provider  string // where the client's own credential goes; "" if it brings none
	window    int    // context window configured in the client, in tokens; 0: its own
	recalls   bool   // the client has the proxy's recall tools
	threads   bool   // the provider holds the client's conversation
	terminal  bool   // a person sits at the client
	tools     bool   // the client offers its tools for files and plans
	guide     Guide
	binary    string // the program, for commands on a user's machine
}

// newSession makes the folders of a session below root.
func newSession(root string) (*session, error) {
	s := &session{home: filepath.Join(root, "home"), work: filepath.Join(root, "work"), temporary: filepath.Join(root, "tmp")}
	for _, folder := range []string{s.home, s.work, s.temporary} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("folders of a session: %w", err)
		}
	}

	return s, nil
}

// write writes a file below the session's home.
func (s *session) write(name, text string) error {
	return writeBelow(s.home, name, text)
}

// writeJSON writes a value as a JSON file below the session's home.
func writeJSON[T any](s *session, name string, value T) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	return s.write(name, string(text))
}

func writeBelow(root, name, text string) error {
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil { //nolint:gosec // in the folder of the run
		return fmt.Errorf("write %s: %w", name, err)
	}

	return nil
}

// platform is where a client's requests go: the double of a provider.
type platform struct {
	models *providerdouble.Double
	listen func(address string) (url string, stop func(), err error)

	// keys returns the workspace's keys for the double at its address; nil for keys of Anthropic and OpenAI.
	keys func(address string) []programtest.ProviderKey
}

// openPlatform makes a platform.
type openPlatform func(config providerdouble.Config) (platform, error)

// The key that the doubles accept, and where they are.
const (
	cloudKey      = "key-of-the-cloud-abcdefgh"
	cloudRegion   = "us-east-1"
	cloudProject  = "northbeam"
	cloudLocation = "global"
)

// oneKey is a workspace with a single key of a preset.
func oneKey(preset, path, region string, secretAt func(address string) string) func(string) []programtest.ProviderKey {
	return func(address string) []programtest.ProviderKey {
		return []programtest.ProviderKey{{Provider: preset, Name: preset, Key: secretAt(address), BaseURL: address + path, Region: region}}
	}
}

func sameKey(string) string { return cloudKey }

// direct are Anthropic's and OpenAI's own APIs.
func direct(config providerdouble.Config) (platform, error) {
	double := providerdouble.NewHandler(config)

	return platform{models: double, listen: double.Listen}, nil
}

// gemini is the Gemini API.
func gemini(config providerdouble.Config) (platform, error) {
	double := providerdouble.NewHandler(config)

	return platform{double, double.Listen, oneKey("gemini", "", "", sameKey)}, nil
}

// bedrock is Amazon Bedrock.
func bedrock(config providerdouble.Config) (platform, error) {
	double := providerdouble.NewBedrock(providerdouble.BedrockConfig{Config: config, Region: cloudRegion, Keys: []string{cloudKey}})

	return platform{double.Models, double.Listen, oneKey("bedrock", "", cloudRegion, sameKey)}, nil
}

// googleCloud is Claude on Google Cloud, with the key of a service account.
func googleCloud(config providerdouble.Config) (platform, error) {
	double, err := providerdouble.NewCloud(providerdouble.CloudConfig{Config: config, Project: cloudProject, Location: cloudLocation})
	if err != nil {
		return platform{}, err
	}
	const path = "/v1/projects/" + cloudProject + "/locations/" + cloudLocation

	return platform{double.Models, double.Listen, oneKey("google", path, cloudLocation, double.ServiceAccount)}, nil
}

// foundry is Claude in Microsoft Foundry.
func foundry(config providerdouble.Config) (platform, error) {
	double, err := providerdouble.NewCloud(providerdouble.CloudConfig{Config: config, Keys: []string{cloudKey}})
	if err != nil {
		return platform{}, err
	}

	return platform{double.Models, double.Listen, oneKey("foundry", "/anthropic", "", sameKey)}, nil
}
