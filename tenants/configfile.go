package tenants

// ConfigChange is what an import changes of a workspace's configuration.
type ConfigChange struct {
	Place  string // in the file: "pipeline.ipc.minClear", "api_keys.laptop.concurrency"
	Before string // empty if none
	After  string // empty if nothing is left
}

// ConfigImport is what came of reading a configuration file into a workspace.
type ConfigImport struct {
	Changes []ConfigChange
	ByHand  []string // what the file holds and no import does, with what to do, as sentences
}
