package providerdouble

import "strings"

// Refusals of OpenAI's schema check, in its words.

func brokenJSON() *Rejection {
	return refuse("We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)")
}

func missingParameter(param string) *Rejection {
	return refuse("Missing required parameter: '%s'.", param).at(param).coded("missing_required_parameter")
}

func unknownParameter(param string) *Rejection {
	return refuse("Unknown parameter: '%s'.", param).at(param).coded("unknown_parameter")
}

func wrongType(param, want string, got byte) *Rejection {
	return refuse("Invalid type for '%s': expected %s, but got %s instead.", param, want, typeName(got)).at(param).coded("invalid_type")
}

func wrongValue(param, value string, supported ...string) *Rejection {
	last := len(supported) - 1
	words := "'" + strings.Join(supported, "', '") + "'"
	if last > 0 {
		words = "'" + strings.Join(supported[:last], "', '") + "', and '" + supported[last] + "'"
	}
	return refuse("Invalid value: '%s'. Supported values are: %s.", value, words).at(param).coded("invalid_value")
}

func emptyArray(param string) *Rejection {
	return refuse("Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param).at(param).coded("empty_array")
}

func wrongPattern(param string) *Rejection {
	return refuse("Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param).at(param).coded("invalid_value")
}

func tooLong(param string, limit, got int) *Rejection {
	return refuse("Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, limit, got).at(param).coded("string_above_max_length")
}

func typeName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n', 0:
		return "null"
	default:
		return "a number"
	}
}
