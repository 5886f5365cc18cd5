package providerdouble

type responsesEvent struct {
	Type         string        `json:"type"`
	Sequence     int           `json:"sequence_number"`
	Response     *response     `json:"response,omitempty"`
	OutputIndex  *int          `json:"output_index,omitempty"`
	ItemID       string        `json:"item_id,omitempty"`
	Item         *responseItem `json:"item,omitempty"`
	ContentIndex *int          `json:"content_index,omitempty"`
	SummaryIndex *int          `json:"summary_index,omitempty"`
	Part         *responsePart `json:"part,omitempty"`
	Delta        *string       `json:"delta,omitempty"`
	Text         *string       `json:"text,omitempty"`
	Arguments    *string       `json:"arguments,omitempty"`
	Input        *string       `json:"input,omitempty"`
	Logprobs     *[]string     `json:"logprobs,omitempty"`
}

// eventWriter numbers the events of one stream.
type eventWriter struct {
	events []event
	chunks int
}

func (w *eventWriter) add(e responsesEvent) {
	e.Sequence = len(w.events)
	w.events = append(w.events, event{name: e.Type, data: encode(e), chunk: e.Delta != nil})
}

// responsesEvents cuts a whole answer into the events of its stream.
func responsesEvents(whole response, chunks int) []event {
	w := &eventWriter{chunks: chunks}
	opening := whole
	opening.Status, opening.Output, opening.Usage, opening.Incomplete = "in_progress", []responseItem{}, nil, nil
	w.add(responsesEvent{Type: "response.created", Response: &opening})
	w.add(responsesEvent{Type: "response.in_progress", Response: &opening})
	for i, written := range whole.Output {
		w.item(i, written)
	}
	w.add(responsesEvent{Type: "response." + whole.Status, Response: &whole})
	return w.events
}

// failedEvents is the stream of an answer that is refused after its start.
func failedEvents(whole response, refusal *Rejection) []event {
	w := &eventWriter{}
	whole.Status, whole.Output, whole.Usage, whole.Incomplete = "in_progress", []responseItem{}, nil, nil
	w.add(responsesEvent{Type: "response.created", Response: &whole})
	w.add(responsesEvent{Type: "response.in_progress", Response: &whole})
	failed := whole
	failed.Status, failed.Error = "failed", &responseError{Code: refusal.Code, Message: refusal.Message}
	w.add(responsesEvent{Type: "response.failed", Response: &failed})
	return w.events
}

func (w *eventWriter) item(i int, written responseItem) {
	opening := written
	empty := ""
	switch written.Type {
	case "message":
		opening.Status, opening.Content = "in_progress", &[]responsePart{}
	case "reasoning":
		opening.Summary, opening.Sealed = &[]responsePart{}, ""
	case "function_call":
		opening.Status, opening.Arguments = "in_progress", &empty
	case "custom_tool_call":
		opening.Status, opening.Input = "in_progress", &empty
	}
	w.add(responsesEvent{Type: "response.output_item.added", OutputIndex: &i, Item: &opening})
	switch written.Type {
	case "message":
		w.text(i, written)
	case "reasoning":
		w.summary(i, written)
	case "function_call":
		w.argument(i, written, "response.function_call_arguments", *written.Arguments)
	case "custom_tool_call":
		w.argument(i, written, "response.custom_tool_call_input", *written.Input)
	}
	w.add(responsesEvent{Type: "response.output_item.done", OutputIndex: &i, Item: &written})
}

func (w *eventWriter) text(i int, written responseItem) {
	zero, none := 0, &[]string{}
	for _, part := range *written.Content {
		opening := part
		opening.Text = ""
		w.add(responsesEvent{Type: "response.content_part.added", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Part: &opening})
		for _, piece := range pieces(part.Text, w.chunks) {
			w.add(responsesEvent{Type: "response.output_text.delta", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Delta: &piece, Logprobs: none})
		}
		w.add(responsesEvent{Type: "response.output_text.done", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Text: &part.Text, Logprobs: none})
		w.add(responsesEvent{Type: "response.content_part.done", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Part: &part})
	}
}

func (w *eventWriter) summary(i int, written responseItem) {
	zero := 0
	for _, part := range *written.Summary {
		opening := part
		opening.Text = ""
		w.add(responsesEvent{Type: "response.reasoning_summary_part.added", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Part: &opening})
		for _, piece := range pieces(part.Text, w.chunks) {
			w.add(responsesEvent{Type: "response.reasoning_summary_text.delta", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Delta: &piece})
		}
		w.add(responsesEvent{Type: "response.reasoning_summary_text.done", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Text: &part.Text})
		w.add(responsesEvent{Type: "response.reasoning_summary_part.done", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Part: &part})
	}
}

func (w *eventWriter) argument(i int, written responseItem, name, text string) {
	for _, piece := range pieces(text, 2) {
		w.add(responsesEvent{Type: name + ".delta", OutputIndex: &i, ItemID: written.ID, Delta: &piece})
	}
	done := responsesEvent{Type: name + ".done", OutputIndex: &i, ItemID: written.ID, Arguments: &text}
	if written.Type == "custom_tool_call" {
		done.Arguments, done.Input = nil, &text
	}
	w.add(done)
}
