# Of go-md2man's output: no paragraph begins right behind a heading, and constant width is bold, which terminals have.
/^\.SH/{
n
/^\.PP$/d
}
s/\\fC/\\fB/g
