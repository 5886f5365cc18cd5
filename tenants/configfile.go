package tenants

// ConfigChange is one change that an import makes to a workspace's configuration.
type ConfigChange struct {
	Place  string // in the file: "pipeline.ipc.minClear", "api_keys.laptop.concurrency"
	Before string // "" if absent
	After  string // "" if removed
}

// ConfigImport is the result of importing a configuration file into a workspace.
type ConfigImport struct {
	Changes []ConfigChange
	ByHand  []string // parts of the file that an import skips, with instructions, as sentences
}
