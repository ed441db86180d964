// The app's own tables. They are in the same database as the jobs. `npm run tables` writes their migrations.
import { pgTable, text, timestamp, uuid } from "drizzle-orm/pg-core";

export const readers = pgTable("readers", {
  id: uuid().primaryKey(),
  email: text().notNull().unique(),
  joinedAt: timestamp("joined_at", { withTimezone: true }).notNull().defaultNow(),
  confirmedAt: timestamp("confirmed_at", { withTimezone: true }),
});

export const issues = pgTable("issues", {
  id: uuid().primaryKey(),
  subject: text().notNull(),
  html: text(),
  publishedAt: timestamp("published_at", { withTimezone: true }),
});
