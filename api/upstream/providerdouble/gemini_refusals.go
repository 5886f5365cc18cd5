package providerdouble

import (
	"net/http"
	"strconv"
)

// geminiRefusalFor returns the refusal of a misbehavior in Google's words; nil for other misbehavior.
func geminiRefusalFor(misbehave string) *Rejection {
	switch misbehave {
	case MisbehaveRateLimit:
		return &Rejection{Status: http.StatusTooManyRequests, RetryAfter: 1, Message: "You exceeded your current quota, please check your plan and billing details. Please retry in 1s."}
	case MisbehaveSpendCap:
		return &Rejection{Status: http.StatusTooManyRequests, Message: "Resource has been exhausted (e.g. check quota)."}
	case MisbehaveOverloaded:
		return &Rejection{Status: http.StatusServiceUnavailable, Message: "The model is overloaded. Please try again later."}
	case MisbehaveFailure:
		return &Rejection{Status: http.StatusInternalServerError, Message: "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"}
	default:
		return nil
	}
}

// geminiSignIn refuses a missing or a wrong key in Google's words.
func geminiSignIn(key string) *Rejection {
	if key == "" {
		return &Rejection{
			Status:  http.StatusForbidden,
			Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
		}
	}
	return refuse("API key not valid. Please pass a valid API key.").coded("API_KEY_INVALID")
}

func encodeSeconds(seconds int) string { return strconv.Itoa(seconds) + "s" }
