package apiclients

import (
	"palimpsest/api/programtest"
	"palimpsest/api/upstream/providerdouble"
)

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
