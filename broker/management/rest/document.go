package rest

// Doc is what the API's document (OpenAPI) has about a route besides its path and who may use it. A route of RabbitMQ's API has none.
type Doc struct {
	ID      string // the operation's name for generated clients
	Summary string
	Text    string // more about it, Markdown; may be empty
	Query   []Parameter
	// Body and Answer are values of the types that the JSON of the request and of the answer is read into and written from. Without a Body there
	// is none. Without an Answer the route answers 204.
	Body, Answer any
	Created      bool     // the answer is 201
	Empty        bool     // it may also be 204
	Kinds        []string // media types of the answer; none: application/json
	BodyKind     string   // media type of the body; "" application/json
	// Rows: Request.Rows makes the answer, which is sorted, cut into pages and reduced to columns as the query asks.
	Rows bool
}

// Parameter is one of the query. Value is of its type: "", 0, int64(0) or false.
type Parameter struct {
	Name, Text string
	Value      any
	OneOf      []string // what it can be; none: anything
}
