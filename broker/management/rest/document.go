package rest

// Doc describes a route in the API's document (OpenAPI), which also has its path and who may use it. A route of RabbitMQ's API has none.
type Doc struct {
	ID      string // the operation's name for generated clients
	Summary string
	Text    string // more about it, Markdown; may be empty
	Query   []Parameter
	// Body and Answer have the types of the request's and the answer's JSON. If Body is nil, a request has no body. If Answer is nil, the route
	// answers 204.
	Body, Answer any
	// Accepted has the type of the JSON of the answer 202. If it is nil, there is none.
	Accepted any
	Created  bool     // the answer is 201
	Empty    bool     // it may also be 204
	Kinds    []string // media types of the answer; none: application/json
	BodyKind string   // media type of the body; "" application/json
	// Rows: the answer is made by Request.Rows. The query can sort it, cut it into pages and reduce it to columns.
	Rows bool
}

// Parameter is a parameter of the query. Value has its type: "", 0, int64(0) or false.
type Parameter struct {
	Name, Text string
	Value      any
	OneOf      []string // the possible values; none: any
}
