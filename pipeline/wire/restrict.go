package wire

// RestrictsAnswer reports whether the settings of a body of Gemini's APIs ask for something other than one answer of text:
// for JSON, sound or pictures, for several answers, or for a tool call.
func RestrictsAnswer(body *Envelope) bool {
	if restrictsGeneration(body) {
		return true
	}
	if modalities, _ := body.Member("response_modalities"); !IsNull(modalities) {
		return true
	}
	for _, name := range []string{"toolConfig", "tool_config"} {
		config, _ := body.Member(name)
		for _, calling := range []string{"functionCallingConfig", "function_calling_config"} {
			if mode := Text(Get(config, calling), "mode"); mode == "ANY" {
				return true
			}
		}
	}
	return false
}

// restrictsGeneration reports the same for the settings of the generation.
func restrictsGeneration(body *Envelope) bool {
	for _, name := range []string{"generationConfig", "generation_config"} {
		config, _ := body.Member(name)
		for member, value := range Members(config) {
			switch string(member) {
			case "responseMimeType", "response_mime_type":
				if string(value) != `"text/plain"` && string(value) != `""` && !IsNull(value) {
					return true
				}
			case "candidateCount", "candidate_count":
				if string(value) != "1" && !IsNull(value) {
					return true
				}
			case "tool_choice": // of the Interactions API
				if choice, _ := String(value); choice != "auto" && choice != "none" && !IsNull(value) {
					return true
				}
			case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema", "responseModalities", "response_modalities":
				if !IsNull(value) {
					return true
				}
			}
		}
	}
	return false
}
