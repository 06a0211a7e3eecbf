package policy

import "maps"

// Effective returns what a policy and an operator policy set together. Each may be nil; if
// both are, so is the result.
func Effective(user, operator *Policy) Definition {
	switch {
	case user == nil && operator == nil:
		return nil
	case operator == nil:
		return user.Definition
	case user == nil:
		return operator.Definition
	}
	return merge(user.Definition, operator.Definition)
}

// merge combines two definitions: it takes the lower of two limits, otherwise the operator's
// value (RabbitMQ: Operator Policies).
func merge(user, operator Definition) Definition {
	merged := maps.Clone(user)
	for key, bound := range operator {
		if value, both := user[key]; both {
			merged[key] = mergeValue(key, value, bound)
		} else {
			merged[key] = bound
		}
	}
	return merged
}

func mergeValue(key string, user, operator any) any {
	a, isInt := user.(int64)
	b, alsoInt := operator.(int64)
	switch {
	case !isInt || !alsoInt || key == "queue-version":
		return operator
	case key == "delivery-limit" && (a < 0 || b < 0):
		return max(a, b) // a negative one means no limit
	}
	return min(a, b)
}
