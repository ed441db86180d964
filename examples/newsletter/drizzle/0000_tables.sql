CREATE TABLE "issues" (
	"id" uuid PRIMARY KEY NOT NULL,
	"subject" text NOT NULL,
	"html" text,
	"published_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "readers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"joined_at" timestamp with time zone DEFAULT now() NOT NULL,
	"confirmed_at" timestamp with time zone,
	CONSTRAINT "readers_email_unique" UNIQUE("email")
);
