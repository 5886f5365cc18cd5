package components

import "palimpsest/pipeline"

// Trigger is a way to decide when old turns are compressed, as people know it.
type Trigger struct {
	Value   string // as the pipeline has it
	Label   string
	Meaning string // for what the model sees, in one sentence
}

// Triggers returns the ways there are, the default first.
func Triggers() []Trigger {
	return []Trigger{
		{pipeline.TriggerWindow, "Only near the limit", "The model sees every turn word for word for as long as all of them fit."},
		{pipeline.TriggerBreakEven, "Spend less", "The model sees old turns in shorter forms as soon as reading them again has cost as much as shortening them."},
	}
}

// TriggerLabel returns what people know a trigger as.
func TriggerLabel(value string) string {
	for _, trigger := range Triggers() {
		if trigger.Value == value {
			return trigger.Label
		}
	}
	return value
}

// TriggerOptions returns the ways there are for a field that is chosen from.
func TriggerOptions() []Option {
	var options []Option
	for _, trigger := range Triggers() {
		options = append(options, Option{Value: trigger.Value, Label: trigger.Label})
	}
	return options
}
