package components

import "palimpsest/pipeline/modules/ipc"

// TriggerLabel returns a trigger's display name.
func TriggerLabel(value string) string {
	for _, trigger := range ipc.Triggers() {
		if trigger.Value == value {
			return trigger.Label
		}
	}
	return value
}

// TriggerOptions returns all triggers as options of a field.
func TriggerOptions() []Option {
	var options []Option
	for _, trigger := range ipc.Triggers() {
		options = append(options, Option{Value: trigger.Value, Label: trigger.Label})
	}
	return options
}
