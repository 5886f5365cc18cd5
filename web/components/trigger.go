package components

import "palimpsest/pipeline/modules/ipc"

// TriggerLabel returns what people know a trigger as.
func TriggerLabel(value string) string {
	for _, trigger := range ipc.Triggers() {
		if trigger.Value == value {
			return trigger.Label
		}
	}
	return value
}

// TriggerOptions returns the ways there are for a field that is chosen from.
func TriggerOptions() []Option {
	var options []Option
	for _, trigger := range ipc.Triggers() {
		options = append(options, Option{Value: trigger.Value, Label: trigger.Label})
	}
	return options
}
