package deadletters

// HasValue reports whether a body has a value at a path; a wrong path has none.
func HasValue(body []byte, path, want string) bool {
	v, err := parsePath(path, want)
	return err == nil && v.in(body)
}
