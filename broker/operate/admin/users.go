package admin

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/definitions"
	"curfew/broker/operate"
)

var (
	_ = operate.Group("user", "Add, change, delete and list the users of a running Curfew and what they may do")
	_ = operate.Group("user permissions", "Set, clear and list what users may do in a virtual host")
	_ = operate.Group("user topics", "Set, clear and list which routing keys users may use at topic exchanges")
	_ = operate.Group("user limits", "Set, clear and list the limits of users")
)

// UserFilter names a user; "" names all.
type UserFilter struct {
	User string `json:"user" form:"name" hide:"command"`
}

// UserRow is a user in a list.
type UserRow struct {
	Name      string        `json:"name"`
	Tags      []string      `json:"tags" faint:"none"`
	VHosts    []string      `json:"vhosts" label:"Virtual hosts" faint:"none: cannot log in over AMQP" hide:"api command"`
	Login     string        `json:"login" label:"Logs in" hide:"api command"`
	Limits    access.Limits `json:"limits" hide:"table page"`
	Hash      string        `json:"password_hash" hide:"command page"` // in base64
	Algorithm string        `json:"hashing_algorithm" hide:"command page"`
}

// ListUsers lists the users by name. Error: ErrNotFound if there is no user with the name.
var ListUsers = operate.Define(operate.Op{
	Name: "list_users", Noun: "user", Title: "List the users", Rule: operate.Rule{Role: operate.Administrator, Looks: true},
	Routes: []string{"GET /api/users"}, One: "GET /api/users/{user}", Command: "user list",
	Page: operate.Page{On: "/users", Title: "Users", Tab: "/users", Opens: "/user"},
}, func(_ context.Context, c *operate.Call, q UserFilter) (list []UserRow, err error) {
	entries := map[string][]string{}
	for _, p := range c.Broker.Accounts.Permissions() {
		entries[p.User] = append(entries[p.User], p.VHost)
	}
	for _, u := range c.Broker.Accounts.Users() {
		if q.User != "" && q.User != u.Name {
			continue
		}
		row := UserRow{u.Name, u.Tags, entries[u.Name], "with a password", u.Limits, base64.StdEncoding.EncodeToString(u.PasswordHash), u.Algorithm}
		if len(u.PasswordHash) == 0 {
			row.Login = "with a certificate only"
		}
		if row.Algorithm == "" {
			row.Algorithm = access.MD5
		}
		list = append(list, row)
	}
	if q.User != "" && list == nil {
		return nil, operate.ErrNotFound
	}
	return list, nil
})

// Credentials are a password, or its hash; without either the user has no password, as in RabbitMQ.
type Credentials struct {
	Password  string `json:"password" is:"password" need:"page" doc:"The password. Only its hash is kept."`
	Hash      string `json:"password_hash" hide:"command page" doc:"The hash of the password, in base64, if there is no password."`
	Algorithm string `json:"hashing_algorithm" hide:"command page" doc:"How it was hashed; rabbit_password_hashing_sha256 if it is missing."`
}

// set sets the password of a user.
func (q *Credentials) set(u *access.User) (err error) {
	if q.Password != "" && q.Hash != "" {
		return &operate.Invalid{Reason: definitions.ErrTwoPasswords.Error()}
	}
	u.SetPassword(q.Password)
	if q.Hash == "" {
		return nil
	}
	if u.PasswordHash, err = base64.StdEncoding.DecodeString(q.Hash); err != nil {
		return &operate.Wrong{Field: "password_hash", Code: "not_base64", About: []any{q.Hash}}
	}
	if u.Algorithm = q.Algorithm; u.Algorithm == "" {
		u.Algorithm = access.SHA256
	}
	return nil
}

// UserTags are what a user may do besides AMQP.
type UserTags struct {
	Tags []string `json:"tags" form:"tag" label:"Tags: what the user may do besides AMQP" log:"tags" eg:"monitoring" oneof:"management policymaker monitoring administrator impersonator" texts:"the management API, for what the user may do over AMQP|policies|this dashboard, and a look at all virtual hosts|everything|publish with the user-id of another user" doc:"management, policymaker, monitoring, administrator, impersonator or others, separated by commas"`
}

// UserSettings are a user to be made or replaced.
type UserSettings struct {
	User string `json:"user" form:"name" label:"Name" need:"page" log:"name" eg:"app"`
	UserTags
	Credentials
}

// SetUser makes a user, or replaces the password and the tags of the one with that name; limits stay.
var SetUser = operate.Define(operate.Op{
	Name: "set_user", Noun: "user", Title: "Add a user, or replace one; the password is read from standard input or a file", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"PUT /api/users/{user}"}, Command: "user add <user>",
	Page: operate.Page{On: "/user/new", Title: "New user", Tab: "/users", Parent: "/users", Up: "Users", Rows: "list_users", Begin: "New user…", Button: "Add the user", Done: "User created.", Next: "/user"},
}, func(_ context.Context, c *operate.Call, q UserSettings) (none operate.None, err error) {
	if q.Tags == nil {
		return none, &operate.Invalid{Reason: "tags_not_present"}
	}
	u := access.User{Name: q.User, Tags: q.Tags}
	if err := q.Credentials.set(&u); err != nil {
		return none, err
	}
	old, existed := c.Broker.Accounts.User(u.Name)
	u.Limits, c.Created = old.Limits, !existed
	return none, c.Broker.Accounts.PutUser(u)
}).Replaces(func(c *operate.Call, q UserSettings) (*UserSettings, any) { return nil, userVersion(c, q.User) })

// userVersion changes with the password, the tags, the limits and the permissions of a user; nil: there is no such user.
func userVersion(c *operate.Call, name string) any {
	u, ok := c.Broker.Accounts.User(name)
	if !ok {
		return nil
	}
	return []any{u,
		slices.DeleteFunc(c.Broker.Accounts.Permissions(), func(p access.Permission) bool { return p.User != name }),
		slices.DeleteFunc(c.Broker.Accounts.TopicPermissions(), func(p access.TopicPermission) bool { return p.User != name })}
}

// ofUser is the error of a change to a user: without such a user ErrNotFound.
func ofUser(err error) error {
	if errors.Is(err, broker.ErrNoUser) {
		return operate.ErrNotFound
	}
	return err
}

// changeUser changes a user that exists.
func changeUser(c *operate.Call, name string, change func(*access.User) error) error {
	u, ok := c.Broker.Accounts.User(name)
	if !ok {
		return operate.ErrNotFound
	}
	if err := change(&u); err != nil {
		return err
	}
	return ofUser(c.Broker.Accounts.PutUser(u))
}

// TagChange are new tags of a user.
type TagChange struct {
	User string `json:"user" form:"name" log:"name" eg:"app"`
	UserTags
}

// SetUserTags changes the tags of a user.
var SetUserTags = operate.Define(operate.Op{
	Name: "set_user_tags", Noun: "user", Title: "Change what a user may do besides AMQP", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"PUT /api/curfew/users/{user}/tags"}, Command: "user tags <user> <tags>",
	Page: operate.Page{On: "/user", Post: "/user/tags", Title: "Tags", Button: "Set tags", Done: "Tags changed."},
}, func(_ context.Context, c *operate.Call, q TagChange) (operate.None, error) {
	return operate.None{}, changeUser(c, q.User, func(u *access.User) error { u.Tags = q.Tags; return nil })
}).Replaces(func(c *operate.Call, q TagChange) (*TagChange, any) {
	u, _ := c.Broker.Accounts.User(q.User)
	return &TagChange{q.User, UserTags{u.Tags}}, userVersion(c, q.User)
})

// PasswordChange is a new password of a user.
type PasswordChange struct {
	User string `json:"user" form:"name" log:"name" eg:"app"`
	Credentials
}

// SetUserPassword changes the password of a user. AMQP connections stay open.
var SetUserPassword = operate.Define(operate.Op{
	Name: "set_user_password", Noun: "user", Title: "Change a user's password; it is read from standard input or a file", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"PUT /api/curfew/users/{user}/password"}, Command: "user passwd <user>",
	Page: operate.Page{On: "/user", Post: "/user/password", Title: "Password", Button: "Set the password", Done: "Password changed."},
}, func(_ context.Context, c *operate.Call, q PasswordChange) (operate.None, error) {
	if q.Password == "" && q.Hash == "" {
		return operate.None{}, &operate.Invalid{Reason: "the password is empty"}
	}
	return operate.None{}, changeUser(c, q.User, q.Credentials.set)
}).Replaces(func(c *operate.Call, q PasswordChange) (*PasswordChange, any) { return nil, userVersion(c, q.User) })

// UserName names a user.
type UserName struct {
	User string `json:"user" form:"name" log:"name" eg:"app"`
}

// DeleteUser removes a user with all permissions, and closes the user's connections. Error: ErrNotFound among others.
var DeleteUser = operate.Define(operate.Op{
	Name: "delete_user", Noun: "user", Title: "Delete a user and close the user's connections", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"DELETE /api/users/{user}"}, Command: "user delete <user>",
	Page: operate.Page{On: "/user/delete", Title: "Delete the user", Tab: "/users", Parent: "/user", Rows: "list_users", Link: "Delete…", Danger: true, Next: "/users", Done: "User deleted.",
		Then: "The user loses all permissions, and the user's connections are closed. If it is you, you are logged out and cannot log in again."},
}, func(_ context.Context, c *operate.Call, q UserName) (operate.None, error) {
	return operate.None{}, ofUser(c.Broker.Accounts.DeleteUser(q.User))
}).Replaces(func(c *operate.Call, q UserName) (*UserName, any) { return nil, userVersion(c, q.User) })

// PermissionFilter are the user and the virtual host of permissions; "" is any.
type PermissionFilter struct {
	User  string `json:"user" form:"name"`
	VHost string `json:"vhost" hide:"page"`
}

// both checks that the user exists that a filter names; that its virtual host does, was checked before.
func both(c *operate.Call, user string) error {
	if _, ok := c.Broker.Accounts.User(user); user != "" && !ok {
		return operate.ErrNotFound
	}
	return nil
}

// Permission is what a user may do in a virtual host: each is a regular expression.
type Permission struct {
	VHost     string `json:"vhost" label:"Virtual host" start:"/"`
	User      string `json:"user" form:"name" log:"name" eg:"app"`
	Configure string `json:"configure" is:"pattern" need:"key" start:".*" faint:"nothing" doc:"Declare and delete what this regular expression matches. Empty: nothing."`
	Write     string `json:"write" is:"pattern" need:"key" start:".*" faint:"nothing" doc:"Publish to it, bind it."`
	Read      string `json:"read" is:"pattern" need:"key" start:".*" faint:"nothing" doc:"Consume and purge it, bind to it."`
}

// ListPermissions lists permissions.
var ListPermissions = operate.Define(operate.Op{
	Name: "list_permissions", Noun: "permission", Title: "List the permissions in all virtual hosts", Rule: operate.Rule{Role: operate.Administrator, Looks: true},
	Routes: []string{"GET /api/permissions", "GET /api/users/{user}/permissions", "GET /api/vhosts/{vhost}/permissions"}, One: "GET /api/permissions/{vhost}/{user}",
	Command: "user permissions list",
	Page:    operate.Page{On: "/user", Title: "Permissions", Empty: "None: the user cannot log in over AMQP."},
}, func(_ context.Context, c *operate.Call, q PermissionFilter) (list []Permission, err error) {
	return permissions(c, q), both(c, q.User)
})

func permissions(c *operate.Call, q PermissionFilter) (list []Permission) {
	for _, p := range c.Broker.Accounts.Permissions() {
		if (q.User == "" || p.User == q.User) && (q.VHost == "" || p.VHost == q.VHost) {
			list = append(list, Permission{p.VHost, p.User, p.Configure, p.Write, p.Read})
		}
	}
	return list
}

// SetPermission gives a user permissions in a virtual host.
var SetPermission = operate.Define(operate.Op{
	Name: "set_permission", Noun: "user", Title: "Give a user access to the virtual host: regular expressions over the names of exchanges and queues", Rule: operate.Rule{Role: operate.Administrator}, AnyVHost: true,
	Routes: []string{"PUT /api/permissions/{vhost}/{user}"}, Command: "user permissions set <user> <configure> <write> <read>",
	Example: `  curfew user permissions set app '^app\.' '^(app\.|amq\.default$)' '^app\.'`,
	Page:    operate.Page{On: "/user", Post: "/user/permission", Title: "Set permissions", Rows: "list_permissions", Link: "Change…", Button: "Set permissions", Done: "Permissions changed."},
}, func(_ context.Context, c *operate.Call, q Permission) (operate.None, error) {
	c.Created = permission(c, q.User, q.VHost) == nil
	return operate.None{}, c.Broker.Accounts.SetPermission(access.Permission{User: q.User, VHost: q.VHost, Configure: q.Configure, Write: q.Write, Read: q.Read})
}).Replaces(func(c *operate.Call, q Permission) (*Permission, any) {
	return permission(c, q.User, q.VHost), userVersion(c, q.User)
})

// permission returns a user's permissions in a virtual host; nil: there are none.
func permission(c *operate.Call, user, vhost string) *Permission {
	if user == "" || vhost == "" {
		return nil
	}
	if list := permissions(c, PermissionFilter{user, vhost}); len(list) > 0 {
		return &list[0]
	}
	return nil
}

// UserInVHost names permissions.
type UserInVHost struct {
	VHost string `json:"vhost"`
	User  string `json:"user" form:"name" log:"name" eg:"app"`
}

// ClearPermission removes a user's permissions in a virtual host. Error: ErrNotFound among others.
var ClearPermission = operate.Define(operate.Op{
	Name: "clear_permission", Noun: "user", Title: "Remove a user's access to the virtual host", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"DELETE /api/permissions/{vhost}/{user}"}, Command: "user permissions clear <user>",
	Page: operate.Page{On: "/user/permission/clear", Title: "Clear the permissions of", Tab: "/users", Parent: "/user", Rows: "list_permissions", Link: "Clear…", Button: "Clear them", Danger: true, Done: "Permissions changed.",
		Then: "The user cannot log in to the virtual host. Open connections stay, and their requests are refused."},
}, func(_ context.Context, c *operate.Call, q UserInVHost) (operate.None, error) {
	if permission(c, q.User, q.VHost) == nil {
		return operate.None{}, operate.ErrNotFound
	}
	return operate.None{}, c.Broker.Accounts.ClearPermission(q.User, q.VHost)
})

// TopicPermission restricts the routing keys of a user on one topic exchange: each is a regular expression.
type TopicPermission struct {
	VHost    string `json:"vhost" label:"Virtual host" start:"/"`
	User     string `json:"user" form:"name" log:"name" eg:"app"`
	Exchange string `json:"exchange" label:"Topic exchange" need:"value" start:"amq.topic" log:"exchange" eg:"amq.topic"`
	Write    string `json:"write" is:"pattern" need:"key" start:".*" eg:"'^orders'" faint:"nothing" doc:"Publish with the routing keys that this regular expression matches."`
	Read     string `json:"read" is:"pattern" need:"key" start:".*" eg:"'.*'" faint:"nothing" doc:"Bind queues with these."`
}

// TopicFilter are the user, virtual host and exchange of topic permissions; "" is any.
type TopicFilter struct {
	User     string `json:"user" form:"name"`
	VHost    string `json:"vhost" hide:"page"`
	Exchange string `json:"exchange" hide:"page"`
}

// ListTopicPermissions lists topic permissions. For one user in one virtual host, none is ErrNotFound, as in RabbitMQ.
var ListTopicPermissions = operate.Define(operate.Op{
	Name: "list_topic_permissions", Noun: "permission", Title: "List the topic permissions in all virtual hosts", Rule: operate.Rule{Role: operate.Administrator, Looks: true},
	Routes:  []string{"GET /api/topic-permissions", "GET /api/users/{user}/topic-permissions", "GET /api/vhosts/{vhost}/topic-permissions", "GET /api/topic-permissions/{vhost}/{user}"},
	Command: "user topics list",
	Page:    operate.Page{On: "/user", Title: "Topic permissions", Empty: "None: the user may use every routing key at topic exchanges."},
}, func(_ context.Context, c *operate.Call, q TopicFilter) ([]TopicPermission, error) {
	list := topics(c, q)
	if q.User != "" && q.VHost != "" && list == nil {
		return nil, operate.ErrNotFound
	}
	return list, both(c, q.User)
})

func topics(c *operate.Call, q TopicFilter) (list []TopicPermission) {
	for _, p := range c.Broker.Accounts.TopicPermissions() {
		if (q.User == "" || p.User == q.User) && (q.VHost == "" || p.VHost == q.VHost) && (q.Exchange == "" || p.Exchange == q.Exchange) {
			list = append(list, TopicPermission{p.VHost, p.User, p.Exchange, p.Write, p.Read})
		}
	}
	return list
}

// SetTopicPermission restricts the routing keys of a user on one topic exchange.
var SetTopicPermission = operate.Define(operate.Op{
	Name: "set_topic_permission", Noun: "user", Title: "Restrict the routing keys of a user at a topic exchange: regular expressions", Rule: operate.Rule{Role: operate.Administrator}, AnyVHost: true,
	Routes: []string{"PUT /api/topic-permissions/{vhost}/{user}"}, Command: "user topics set <user> <exchange> <write> <read>",
	Page: operate.Page{On: "/user", Post: "/user/topic", Title: "Set topic permissions", Rows: "list_topic_permissions", Link: "Change…", Button: "Set topic permissions", Done: "Topic permissions changed."},
}, func(_ context.Context, c *operate.Call, q TopicPermission) (operate.None, error) {
	c.Created = topics(c, TopicFilter{q.User, q.VHost, ""}) == nil
	return operate.None{}, c.Broker.Accounts.SetTopicPermission(access.TopicPermission{User: q.User, VHost: q.VHost, Exchange: q.Exchange, Write: q.Write, Read: q.Read})
}).Replaces(func(c *operate.Call, q TopicPermission) (*TopicPermission, any) {
	for _, p := range topics(c, TopicFilter{q.User, q.VHost, q.Exchange}) {
		if q.Exchange != "" {
			return &p, userVersion(c, q.User)
		}
	}
	return nil, userVersion(c, q.User)
})

// TopicName names the topic permissions of a user at an exchange, "" for all.
type TopicName struct {
	VHost    string `json:"vhost"`
	User     string `json:"user" form:"name" log:"name" eg:"app"`
	Exchange string `json:"exchange" log:"exchange" eg:"amq.topic"`
}

// ClearTopicPermission lifts a user's restrictions on one topic exchange of a virtual host, or on all of them. Error: ErrNotFound among others.
var ClearTopicPermission = operate.Define(operate.Op{
	Name: "clear_topic_permission", Noun: "user", Title: "Lift the restrictions of a user at a topic exchange", Rule: operate.Rule{Role: operate.Administrator},
	Routes:  []string{"DELETE /api/topic-permissions/{vhost}/{user}/{exchange}", "DELETE /api/topic-permissions/{vhost}/{user}"},
	Command: "user topics clear <user> <exchange>",
	Page: operate.Page{On: "/user/topic/clear", Title: "Clear the topic permissions of", Tab: "/users", Parent: "/user", Rows: "list_topic_permissions", Link: "Clear…", Button: "Clear them", Danger: true, Done: "Topic permissions changed.",
		Then: "The user may use every routing key at the exchange, if the user may use the exchange."},
}, func(_ context.Context, c *operate.Call, q TopicName) (operate.None, error) {
	if topics(c, TopicFilter{q.User, q.VHost, q.Exchange}) == nil {
		return operate.None{}, operate.ErrNotFound
	}
	return operate.None{}, c.Broker.Accounts.ClearTopicPermissions(q.User, q.VHost, q.Exchange)
})

// UserLimitRow are the limits of a user.
type UserLimitRow struct {
	User  string        `json:"user"`
	Value access.Limits `json:"value" label:"Limits"`
}

// ListUserLimits lists the limits of the users that have some.
var ListUserLimits = operate.Define(operate.Op{
	Name: "list_user_limits", Title: "List the limits of users", Rule: operate.Rule{Role: operate.Administrator, Looks: true},
	Routes: []string{"GET /api/user-limits", "GET /api/user-limits/{user}"}, Command: "user limits list",
}, func(_ context.Context, c *operate.Call, q UserFilter) (list []UserLimitRow, err error) {
	for _, u := range c.Broker.Accounts.Users() {
		if len(u.Limits) > 0 && (q.User == "" || q.User == u.Name) {
			list = append(list, UserLimitRow{u.Name, u.Limits})
		}
	}
	return list, both(c, q.User)
})

// UserLimit is one limit of a user.
type UserLimit struct {
	User  string `json:"user" form:"name" log:"name" eg:"app"`
	Limit string `json:"limit" log:"limit" eg:"max-channels" doc:"max-connections or max-channels"`
	Value int64  `json:"value" need:"key" log:"value" eg:"8" doc:"the limit; -1 is none"`
}

// withLimit is a copy of limits, which are shared and must not be changed, with one that is changed; nil: it is removed.
func withLimit(l access.Limits, name string, n *int64) access.Limits {
	if l = maps.Clone(l); l == nil {
		l = access.Limits{}
	}
	if delete(l, name); n != nil {
		l[name] = int(*n)
	}
	return l
}

// SetUserLimit sets one limit of a user.
var SetUserLimit = operate.Define(operate.Op{
	Name: "set_user_limit", Noun: "user", Title: "Set a limit of a user", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"PUT /api/user-limits/{user}/{limit}"}, Command: "user limits set <user> <limit> <value>",
}, func(_ context.Context, c *operate.Call, q UserLimit) (operate.None, error) {
	u, ok := c.Broker.Accounts.User(q.User)
	if !ok {
		return operate.None{}, &operate.Wrong{Field: "user", Code: "no_such_user", About: []any{q.User}}
	}
	return operate.None{}, c.Broker.Accounts.SetUserLimits(q.User, withLimit(u.Limits, q.Limit, &q.Value))
}).Replaces(func(c *operate.Call, q UserLimit) (*UserLimit, any) { return nil, userVersion(c, q.User) })

// UserLimitName names a limit of a user.
type UserLimitName struct {
	User  string `json:"user" log:"name" eg:"app"`
	Limit string `json:"limit" log:"limit" eg:"max-channels"`
}

// ClearUserLimit removes one limit of a user.
var ClearUserLimit = operate.Define(operate.Op{
	Name: "clear_user_limit", Noun: "user", Title: "Remove a limit of a user", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"DELETE /api/user-limits/{user}/{limit}"}, Command: "user limits clear <user> <limit>",
}, func(_ context.Context, c *operate.Call, q UserLimitName) (operate.None, error) {
	u, ok := c.Broker.Accounts.User(q.User)
	if !ok {
		return operate.None{}, operate.ErrNotFound
	}
	return operate.None{}, c.Broker.Accounts.SetUserLimits(q.User, withLimit(u.Limits, q.Limit, nil))
}).Replaces(func(c *operate.Call, q UserLimitName) (*UserLimitName, any) { return nil, userVersion(c, q.User) })
