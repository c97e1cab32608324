"""The sentences of `wording.TABLE`, one file a subject: kind -> (English, Chinese), with the same placeholders."""
