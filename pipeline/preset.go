package pipeline

// Preset is a named set of settings to start from.
type Preset struct {
	Name  string // as people choose it: "default"
	Title string
	YAML  string // what differs from the defaults
}

// Presets returns the presets in the order in which they are offered.
func Presets() []Preset {
	return []Preset{
		{Name: "default", Title: "Default", YAML: ""},
		{Name: "aggressive", Title: "Aggressive", YAML: "ipc:\n  targetUtilization: 0.5\n  preserveLastTurns: 3\n"},
		{Name: "quality-first", Title: "Quality-first", YAML: "ipc:\n  targetUtilization: 0.9\n  preserveLastTurns: 10\n"},
	}
}
